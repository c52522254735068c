"""Rounds on a made-up machine: which rows are paired, what a disturbed round does, and when there are enough."""

from __future__ import annotations

import itertools
import math
import zlib
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest

from py_backends.contract import Target
from py_backends.harness import watch as watching
from py_backends.harness.case import Case
from py_backends.harness.pairing import Group, add_controls, groups
from py_backends.harness.pool import Pool
from py_backends.harness.running_row import RunningRow, baselines
from py_backends.harness.schedule import until_known
from py_backends.harness.summary import judge, row_of
from py_backends.harness.timed_ceilings import CeilingWorker, TimedCeiling
from py_backends.harness.watch import Watch
from py_backends.results.report import Check, Communication, Rate, Speedup
from py_backends.results.spec import Spec
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Prepared, Runner, Sample

N = 1000


@dataclass
class Sizes:
    """As much of a case as a figure needs."""

    sizes: tuple[int, ...]


def timed(backend: str = "numpy", size: int = N, requested: int = N) -> RunningRow:
    """A row of vecadd that was found right."""
    spec = Spec("vecadd", backend, "cpu", "lecture", "float32", (requested,))
    row = RunningRow(spec, Target("cpu"), None, sizes=(size,), status="ok")
    return row.on(cast(Runner, None), cast(Case, Sizes((size,))))


def versus(group: Group, row: RunningRow) -> Speedup | None:
    """How a row compares with the baseline of its group."""
    return judge([group])[0].get(row)


def sampled(row: RunningRow, seconds: float, noise: float = 0.01, rounds: int = 40) -> RunningRow:
    """With samples of so many rounds, of lengths about `seconds`."""
    generator = np.random.default_rng(zlib.crc32(f"{row.spec.backend} {seconds}".encode()))
    for number in range(rounds):
        kernel = seconds * math.exp(noise * generator.standard_normal())
        row.samples[number] = Sample(upload=0.0, kernel=kernel, download=0.0, end_to_end=kernel, drain=0.0)
    return row


def group_of(*rows: RunningRow, controls: tuple[float, float] = (1.001, 0.999)) -> Group:
    """A baseline of one second with controls, and these rows."""
    baseline = sampled(timed(), 1.0)
    return Group([baseline, *rows], baseline, [sampled(timed(), seconds) for seconds in controls])


class TestPairs:
    def test_rows_are_grouped_by_what_was_asked_for(self) -> None:
        rows = [timed(requested=5), timed("avx", size=3, requested=5), timed("avx"), timed()]
        found = groups(rows)
        assert [{id(row) for row in group.rows} for group in found] == [
            {id(rows[0]), id(rows[1])},
            {id(rows[2]), id(rows[3])},
        ]
        assert [group.baseline for group in found] == [rows[0], rows[3]]

    def test_without_its_baseline_nothing_is_compared(self) -> None:
        alone = sampled(timed("avx"), 0.5)
        assert judge(groups([alone])) == ({}, [])
        assert row_of(alone).seconds is not None

    def test_a_row_of_ranks_says_what_they_tell_one_another(self) -> None:
        row = sampled(timed("mpi"), 0.5)
        for number, sample in row.samples.items():
            late = 1e-4 * (number % 3)
            told = {"communicating": 0.02 + late, "bytes_sent": (8, 16), "kernel_by_rank": (0.4, 0.5 + late)}
            row.samples[number] = replace(sample, **told, communicating_by_rank=(0.01, 0.02 + late))
        made = row_of(row)
        assert made.communication == Communication(
            pytest.approx(0.0201), [8, 16], 0.0, [0.01, pytest.approx(0.0201)], [0.4, pytest.approx(0.5001)]
        )
        assert made.communicating == pytest.approx(0.04, rel=0.1)

    def test_a_checked_row_has_rates_and_says_where_it_ran(self) -> None:
        row = sampled(timed(size=N // 2), 0.5, noise=0)
        assert row_of(row).rate is None, "a row without a check has no result"
        row.check = Check(True, "bitwise", 0.0)
        row.prepared, row.notes = Prepared(0.25, None, first_launch=0.75), ["one", "two"]
        made = row_of(row)
        assert made.rate == Rate(pytest.approx(1e-9 * (N // 2) / 0.5), pytest.approx(1e-9 * 3 * 4 * (N // 2) / 0.5))
        assert (made.shape, made.requested, made.note) == ({"n": N // 2}, {"n": N}, "one; two")
        assert made.seconds is not None
        assert (made.seconds.prepare, made.seconds.first_launch, made.kept) == (0.25, 0.75, False)
        assert made.seconds.kernel == made.seconds.end_to_end
        assert made.kernel_seconds == made.end_to_end_seconds == [0.5] * 40

    def test_rows_on_other_numbers_of_threads_have_workers_of_their_own(self) -> None:
        rows = [replace(timed(), threads=threads) for threads in (2, 3, None)]
        assert [row.worker for row in rows] == [("numpy", "cpu", 2), ("numpy", "cpu", 3), ("numpy", "cpu", 0)]

    def test_rows_and_controls_are_judged_alike(self) -> None:
        quick, alike = sampled(timed("avx"), 0.5), sampled(timed("openmp"), 1.0005)
        found, (control,) = judge([group_of(quick, alike)])
        assert (control.kernel, control.dtype, control.shape) == ("vecadd", "float32", {"n": N})
        for copy in control.first, control.second:
            assert (copy.baseline, copy.verdict, copy.rounds) == ("numpy", "same", 40)
        assert [found[row].verdict for row in (quick, alike)] == ["faster", "same"]
        assert found[quick].speedup == pytest.approx(2, rel=0.02)
        assert found[quick].converged

    def test_a_second_control_that_is_another_thing_is_seen(self) -> None:
        _, (control,) = judge([group_of(controls=(1.0, 1.5))])
        assert control.second.verdict == "slower"

    def test_rows_at_another_shape_are_compared_by_rate(self) -> None:
        small = sampled(timed("python", size=N // 10), 1.0)
        found = versus(group_of(small), small)
        assert found is not None
        assert found.speedup == pytest.approx(0.1, rel=0.02)
        assert not found.same_shape

    def test_of_a_control_that_never_came_to_a_sample_nothing_is_said(self) -> None:
        """Its worker may die in the first round, or that round may be dropped; the others' figures stand."""
        quick = sampled(timed("avx"), 0.5)
        group = group_of(quick)
        group.controls[0].failed = WorkerFailed("crashed", "it died")
        group.controls[0].samples.clear()
        found, controls = judge([group])
        assert controls == []
        assert found[quick].speedup == pytest.approx(2, rel=0.02)

    def test_what_went_wrong_since_is_left_out(self) -> None:
        wrong, right = sampled(timed("avx"), 0.5), sampled(timed("openmp"), 0.5)
        group = group_of(wrong, right)
        wrong.status = "mismatch"
        group.keep_right()
        assert versus(group, wrong) is None
        assert versus(group, right) is not None

    def test_a_baseline_that_went_wrong_is_compared_with_nothing(self) -> None:
        right = sampled(timed("avx"), 0.5)
        group = group_of(right)
        group.rows[0].status = "mismatch"
        group.keep_right()
        assert (group.rows, group.baseline) == ([right], None)
        assert judge([group]) == ({}, [])

    def test_a_baseline_without_controls_is_none(self) -> None:
        """A run without controls compares nothing. A compared row that has them is no baseline by that."""
        rows = [timed(), timed("avx")]
        assert baselines(rows) == {1: 0}
        rows[0].controls = False
        assert baselines(rows) == {}

    @pytest.mark.parametrize(("rounds", "said"), [(5, "5 of the 6 samples that an interval needs"), (6, "")])
    def test_a_time_of_few_samples_says_that_it_has_no_interval(self, rounds: int, said: str) -> None:
        made = row_of(sampled(timed("avx"), 0.5, rounds=rounds))
        assert (made.note or "") == said

    @pytest.mark.parametrize("threads", [(1, 2, 4), (4, 2, 1), (None, 4)])
    def test_the_baseline_is_the_one_on_the_most_threads(self, threads: tuple[int | None, ...]) -> None:
        rows = [timed() for _ in threads]
        for row, number in zip(rows, threads, strict=True):
            row.threads = number
        (group,) = groups(rows)
        assert group.baseline is rows[threads.index(4)]


class MadeUpPool:
    """Of controls: which runners they have, and what is done with each. `fails_at`: of those deeds, if any."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails_at: int | None = None) -> None:
        self.runners: list[tuple[Any, ...]] = []
        self.deeds: list[tuple[str, int]] = []
        self._fails_at = fails_at
        for deed in "try_once", "sample":
            monkeypatch.setattr(RunningRow, deed, lambda row, deed=deed: self._do(deed, row))

    def runner_of(self, row: RunningRow, copy: int) -> Runner:
        self.runners.append((row.spec.backend, row.target, row.threads, copy))
        return cast(Runner, len(self.runners))

    def _do(self, deed: str, row: RunningRow) -> None:
        self.deeds.append((deed, cast(int, row.runner)))
        if len(self.deeds) - 1 == self._fails_at:
            raise WorkerFailed("crashed", "as expected")

    def controls_of(self, group: Group) -> list[RunningRow]:
        group.controls.clear()
        add_controls(group, cast(Pool, self))
        return group.controls


class TestControls:
    def test_are_two_copies_that_are_checked_and_have_had_a_sample(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The sample does not count: it loads code and pages, as the baseline has them loaded."""
        group, bench = group_of(timed("avx")), MadeUpPool(monkeypatch)
        baseline = group.rows[0]
        baseline.repetitions, baseline.warm_up = 7, 3
        controls = bench.controls_of(group)
        assert [of[0] for of in bench.runners] == ["numpy"] * 2
        assert [of[-1] for of in bench.runners] == [1, 2], "each has a worker of its own"
        assert bench.deeds == [("try_once", 1), ("sample", 1), ("try_once", 2), ("sample", 2)]
        assert [(each.repetitions, each.warm_up, each.samples) for each in controls] == [(7, 3, {})] * 2
        assert all(each.notes is not baseline.notes for each in controls), "what is noted of one is not of the other"

    @pytest.mark.parametrize("fails_at", range(4))
    def test_if_one_fails_there_is_none(self, fails_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
        assert MadeUpPool(monkeypatch, fails_at).controls_of(group_of(timed("avx"))) == []

    def test_cost_nothing_where_nothing_is_compared(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bench = MadeUpPool(monkeypatch)
        assert bench.controls_of(group_of()) == [], "the baseline alone"
        assert bench.controls_of(Group([timed("avx"), timed("openmp")], None)) == []
        assert bench.runners == []


class MadeUpInterference:
    """Says of each round what it is told to."""

    def __init__(self, seen: Any) -> None:
        self._seen = iter(seen)

    def begin(self) -> None:
        pass

    def end(self) -> list[str]:
        return cast(list[str], next(self._seen))


def watch(monkeypatch: pytest.MonkeyPatch, group: Group, seen: Any, *ceilings: TimedCeiling) -> Watch:
    monkeypatch.setattr(watching, "Interference", lambda: MadeUpInterference(seen))
    return Watch([*group.sampled, *ceilings])


def run(watch: Watch, group: Group, most: int = 40) -> int:
    """Have rounds sample the group anew, one after the other; how many there were when all was known."""
    given = [(row, dict(row.samples)) for row in group.sampled]
    for row, _ in given:
        row.samples.clear()
    for number in range(most):
        chosen = until_known([group])
        if not chosen:
            return number
        watch.begin()
        for row, samples in given:
            row.samples |= {number: samples[number]} if number in samples and row in chosen else {}
        watch.end(number)
    return most


class TestRounds:
    """They end where all is decided."""

    def rounds_of(self, monkeypatch: pytest.MonkeyPatch, group: Group) -> dict[str, int]:
        """How many rounds each backend had."""
        run(watch(monkeypatch, group, itertools.repeat([])), group)
        return {row.spec.backend: len(row.samples) for row in group.rows}

    def test_a_decided_row_ends_and_the_others_go_on_beside_their_baseline(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clear, unclear = sampled(timed("avx"), 0.5), sampled(timed("cpp"), 0.95, noise=0.3)
        rounds = self.rounds_of(monkeypatch, group_of(clear, unclear))
        assert rounds["avx"] < 15
        assert rounds["cpp"] == rounds["numpy"] == 40

    def test_what_may_be_the_same_goes_on_until_it_is_known_within_two_per_cent(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        quick, slow = sampled(timed("avx"), 1.0, noise=0.001), sampled(timed("cpp"), 1.0, noise=0.1)
        group = group_of(quick, slow)
        assert group.baseline
        sampled(group.baseline, 1.0, noise=0.001)
        rounds = self.rounds_of(monkeypatch, group)
        assert (rounds["avx"], rounds["cpp"]) == (6, 40)

    def test_do_not_wait_for_rows_that_failed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        row = sampled(timed("avx"), 0.5, rounds=3)
        row.failed = WorkerFailed("crashed", "it died")
        group = group_of(row, controls=(0.5, 0.5))
        assert self.rounds_of(monkeypatch, group)["numpy"] < 15

    def test_without_a_baseline_the_time_itself_has_to_be_narrow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for noise, rounds in (0.001, 6), (0.3, 40):
            (group,) = groups([sampled(timed("avx"), 0.5, noise)])
            assert self.rounds_of(monkeypatch, group) == {"avx": rounds}

    def test_rows_that_all_failed_end_them(self) -> None:
        rows = [sampled(timed(name), 0.5, rounds=3) for name in ("avx", "cpp")]
        for row in rows:
            row.failed = WorkerFailed("crashed", "it died")
        assert until_known(groups(rows)) == []


class TestWatch:
    def test_disturbed_rounds_are_dropped_whole_and_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        group = group_of(sampled(timed("avx"), 1.0, noise=0.3))
        group.controls.clear()  # they would be decided
        peak = TimedCeiling("multiply_adds", "float32", "avx2", 2, None, CeilingWorker().sample)
        peak.samples.update(enumerate([1e9] * 40))
        seen = [["steal"], *[[]] * 20, ["others"], ["others", "steal"], *[[]] * 17]
        watcher = watch(monkeypatch, group, seen, peak)
        run(watcher, group)
        rounds = watcher.finish()
        assert (rounds.taken, rounds.kept, rounds.disturbed) == (40, 37, {"steal": 2, "others": 2})
        assert all(set(each.samples) == {*range(40)} - {0, 21, 22} for each in (*group.sampled, peak))

    def test_while_there_are_no_others_schedules_see_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """On a busy machine `choose` and `sweep` had nothing to go by, and never came to their other sizes."""
        group = group_of(sampled(timed("avx"), 0.5))
        watcher = watch(monkeypatch, group, itertools.repeat(["others"]))
        for number in range(40):
            watcher.begin()
            watcher.end(number)
        assert all(len(row.samples) == 40 for row in group.sampled)

    def test_where_all_are_disturbed_all_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        group = group_of(sampled(timed("avx"), 1.0, noise=0.3))
        group.controls.clear()  # they would be decided
        watcher = watch(monkeypatch, group, [*[["others"]] * 35, *[[]] * 5])
        assert run(watcher, group) == 40
        rounds = watcher.finish()
        assert (rounds.taken, rounds.kept, rounds.disturbed) == (40, 40, {"others": 35})
        assert all(len(row.samples) == 40 for row in group.sampled)

    def test_no_row_loses_all_its_samples(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One that was decided while others were disturbed may have no time for further rounds."""
        decided, group = sampled(timed("avx"), 0.5), group_of(sampled(timed("cpp"), 1.0, noise=0.3))
        group.rows.append(decided)
        watcher = watch(monkeypatch, group, [*[["others"]] * 8, *[[]] * 8])
        every = {row.spec.backend: dict(row.samples) for row in group.sampled}
        for row in group.sampled:
            row.samples.clear()
        for number in range(16):
            watcher.begin()
            for row in [row for row in group.sampled if number < 8 or row is not decided]:
                row.samples[number] = every[row.spec.backend][number]
            watcher.end(number)
        assert (watcher.finish().kept, len(decided.samples)) == (16, 8)
        assert group.baseline is not None
        assert len(group.baseline.samples) == 16
