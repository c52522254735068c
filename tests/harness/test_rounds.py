"""Rounds: every row once in each, in an order that changes, until the time is up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from py_backends.contract import Target
from py_backends.harness import rounds
from py_backends.harness.case import Case
from py_backends.harness.rounds import run_rounds
from py_backends.harness.running_row import (
    SAMPLES_TO_CONDEMN,
    SAMPLES_TO_SUSPECT,
    RunningRow,
    calls_of_a_sample,
    warm_up,
)
from py_backends.kernel_text import KernelText
from py_backends.results import report as results
from py_backends.results.check import Verdict
from py_backends.results.spec import Spec
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Runner, Sample

LONG_AGO, NEVER = -1.0, 1e18


@dataclass(eq=False)
class Row:
    """A row whose samples take `seconds` of a clock of its own, and which fails in a round, if in any."""

    name: str
    said: list[str]
    clock: list[float]
    seconds: float = 1.0
    fails_in: int | None = None
    workload: str | None = None
    samples: dict[int, float] = field(default_factory=dict)
    failed: WorkerFailed | None = None

    def sample(self) -> float:
        self.said.append(self.name)
        self.clock[0] += self.seconds
        if len(self.samples) == self.fails_in:
            raise WorkerFailed("crashed", "as expected")
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that have gone by, which nothing but samples moves."""
    now = [0.0]
    monkeypatch.setattr(rounds, "monotonic", lambda: now[0])
    return now


def run(rows: list[Row], deadline: float, **how: int) -> int:
    return run_rounds(lambda: rows, deadline, random.Random(1), lambda *_: None, **{"most": 500, **how})


def test_each_row_is_sampled_once_a_round_in_a_random_order(clock: list[float]) -> None:
    said: list[str] = []
    assert run([Row(name, said, clock) for name in "abcd"], NEVER, most=40) == 40
    orders = {tuple(said[at : at + 4]) for at in range(0, len(said), 4)}
    assert {tuple(sorted(order)) for order in orders} == {("a", "b", "c", "d")}
    assert len(orders) > 10, "what comes after what must not always be the same"


def test_what_is_compared_is_sampled_right_after_one_another(clock: list[float]) -> None:
    """Ratios are of neighbours in time, whatever else a round holds; and none always comes first."""
    said: list[str] = []
    rows = [Row(f"{workload}{name}", said, clock, workload=workload) for name in "abc" for workload in "xyz"]
    run(rows, NEVER, most=30)
    turns = [said[at : at + 9] for at in range(0, len(said), 9)]
    for turn in turns:
        assert [name[0] for name in turn] == [
            workload for workload in turn[0][0] + turn[3][0] + turn[6][0] for _ in "abc"
        ]
    assert len({tuple(name[0] for name in turn[::3]) for turn in turns}) == 6
    assert len({tuple(turn) for turn in turns}) > 25


def test_a_round_that_would_not_end_in_time_is_not_begun(clock: list[float]) -> None:
    assert run([Row(name, [], clock, 2.0) for name in "ab"], deadline=11.0) == 2, "a third one would end at 12"


def test_a_row_may_take_again_as_long_as_it_ever_did(clock: list[float]) -> None:
    row = Row("a", [], clock)

    def begin(number: int, row: Row) -> None:
        row.seconds = 1.0 if number else 5.0

    assert run_rounds(lambda: [row], 11.0, random.Random(1), begin, most=30) == 3, "a fourth one might end at 12"


@pytest.mark.parametrize(("least", "most", "count"), [(1, 30, 1), (6, 30, 6), (6, 4, 4)])
def test_there_are_always_the_least(clock: list[float], least: int, most: int, count: int) -> None:
    rows = [Row("a", [], clock), Row("b", [], clock)]
    assert run(rows, LONG_AGO, least=least, most=most) == count
    assert [list(row.samples) for row in rows] == [list(range(count))] * 2


def test_who_fails_is_left_out_and_keeps_what_it_has(clock: list[float]) -> None:
    said: list[str] = []
    failing, sound = Row("failing", said, clock, fails_in=2), Row("sound", said, clock)
    assert run([failing, sound], NEVER, most=9) == 9
    assert (said.count("failing"), said.count("sound")) == (3, 9)
    assert list(failing.samples) == [0, 1]
    assert failing.failed is not None


def test_without_a_row_there_is_no_round(clock: list[float]) -> None:
    assert run([Row("a", [], clock, fails_in=0)], NEVER, most=9) == 1
    assert run([], NEVER) == 0


def test_a_round_has_only_those_who_were_chosen_for_it(clock: list[float]) -> None:
    rows = [Row(name, [], clock) for name in "abc"]
    turns = iter([rows, rows[1:], rows[:1], []])
    count = run_rounds(lambda: next(turns), NEVER, random.Random(1), lambda *_: None, most=9)
    assert count == 3, "that none was chosen is the end"
    assert [list(row.samples) for row in rows] == [[0, 2], [0, 1], [0, 1]]


def test_the_time_of_a_round_is_that_of_its_rows(clock: list[float]) -> None:
    """A slow row that is not in the next round must not end the rounds of the others."""
    slow, quick = Row("slow", [], clock, 50.0), Row("quick", [], clock, 1.0)
    turns = iter([[slow, quick], *[[quick]] * 9, [slow]])
    assert run_rounds(lambda: next(turns), 100.0, random.Random(1), lambda *_: None, most=30) == 10
    assert (len(slow.samples), len(quick.samples)) == (1, 10)


class MadeUpRunner:
    """Launches take these seconds, and the last downloads these seconds more than the first.

    The last ones of both are for ever.

    asked: the warm-up and repetitions of each sample.
    calls: the whole calls of each sample.
    told: what its device says at the end, or how it fails then.
    """

    told: str | WorkerFailed | None = None

    def __init__(self, seconds: Sequence[float], drain: Sequence[float] = (0.0,), *, cold: bool = False) -> None:
        self._seconds, self._drain, self.cold = list(seconds), list(drain), cold
        self.asked: list[tuple[int, int]] = []
        self.calls: list[int] = []

    def sample(self, _text: KernelText, _case: Case, warm_up: int, repetitions: int, calls: int, **_: Any) -> Sample:
        self.asked.append((warm_up, repetitions))
        self.calls.append(calls)
        seconds, drain = (each.pop(0) if len(each) > 1 else each[0] for each in (self._seconds, self._drain))
        return Sample(upload=0.0, kernel=seconds, download=0.0, end_to_end=seconds, drain=drain)

    def remark(self, _text: KernelText, _case: Case) -> str | None:
        if isinstance(self.told, WorkerFailed):
            raise self.told
        return self.told


class RightCase:
    """Its output is right, whatever a kernel writes."""

    def poison(self) -> None:
        pass

    def check_output(self) -> Verdict:
        return Verdict(results.Check(True, "bitwise", 0.0), None)


def timed(runner: MadeUpRunner) -> RunningRow:
    spec = Spec("vecadd", "avx", "cpu", "tuned", "float32", (1,))
    made = RunningRow(spec, Target("cpu"), cast(KernelText, object()), sizes=(1,), status="ok")
    return made.on(cast(Runner, runner), cast(Case, None))


def test_an_output_is_poisoned_before_each_run_that_is_judged() -> None:
    """Else a kernel that writes nothing has the output of the one before."""
    deeds: list[str] = []
    runner: Any = SimpleNamespace(run=lambda *_: deeds.append("run"), sample=lambda *_, **__: deeds.append("sample"))
    runner.remark = lambda *_: None
    case: Any = RightCase()
    case.poison, case.remark = lambda: deeds.append("poison"), None
    row = timed(cast(MadeUpRunner, runner)).on(runner, case)
    row.try_once()
    row.check_timed()
    assert deeds == ["poison", "run", "poison", "sample"]


class TestSettling:
    """What is uncounted before a sample, and how often a sample repeats a kernel."""

    @pytest.mark.parametrize(
        ("seconds", "launches"), [(1e-6, 3), (0.0049, 3), (0.005, 1), (0.049, 1), (0.050, 0), (2.0, 0)]
    )
    def test_the_shorter_a_kernel_the_more_launches_come_before_it(self, seconds: float, launches: int) -> None:
        assert warm_up(seconds) == launches

    def test_goes_by_the_quickest_of_three(self) -> None:
        """The first one loads pages and code, and any may be disturbed."""
        runner = MadeUpRunner([0.040, 0.004, 0.020, 0.004])
        row = timed(runner)
        assert row.settle()
        assert (row.warm_up, row.repetitions) == (3, 3)
        assert runner.asked == [(1, 0)] * 3 + [(3, 3)]

    @pytest.mark.parametrize(
        ("seconds", "calls"), [(1e-6, 9), (0.0013, 7), (0.0049, 3), (0.0099, 1), (0.0101, 1), (2.0, 1)]
    )
    def test_short_calls_are_repeated_too(self, seconds: float, calls: int) -> None:
        """After a pause, one call of some runtimes may take thirty times as long as the next."""
        assert calls_of_a_sample(seconds) == calls
        runner = MadeUpRunner([seconds])
        row = timed(runner)
        assert row.settle()
        row.sample()
        assert (runner.calls[0], runner.calls[-1]) == (1, calls)

    def test_a_long_kernel_runs_once(self) -> None:
        runner = MadeUpRunner([0.2])
        row = timed(runner)
        assert row.settle()
        assert (row.warm_up, row.repetitions, runner.asked) == (0, 0, [(1, 0)])

    def test_a_cold_sample_is_one_launch(self) -> None:
        runner = MadeUpRunner([1e-6], cold=True)
        row = timed(runner)
        assert row.settle()
        assert (row.repetitions, runner.asked) == (0, [(1, 0)])

    @pytest.mark.parametrize(("drain", "right"), [(0.0, True), (1.0, False)])
    def test_few_repetitions_come_before_many(self, drain: float, right: bool) -> None:
        """Many launches whose wait does not wait would queue hours of work."""
        runner = MadeUpRunner([1e-6], [drain])
        row = timed(runner)
        assert row.settle() is right
        few = 1 if right else SAMPLES_TO_SUSPECT + SAMPLES_TO_CONDEMN
        assert runner.asked == [(1, 0)] * 3 + [(3, 20)] * few
        assert row.repetitions == (10_000 if right else 20)
        assert row.status == ("ok" if right else "impossible")


@pytest.mark.parametrize("told", [None, "so it is"])
def test_the_last_word_of_a_device_is_a_note(told: str | None) -> None:
    row = timed(MadeUpRunner([0.004]))
    row.case, row.runner.told = cast(Case, RightCase()), told  # type: ignore[attr-defined]  # made up
    row.check_timed()
    assert (row.status, row.notes) == ("ok", [told] if told else [])


def test_a_wrong_result_that_a_device_finds_at_the_end_counts() -> None:
    row = timed(MadeUpRunner([0.004]))
    row.case = cast(Case, RightCase())
    row.runner.told = WorkerFailed("mismatch", "an earlier result")  # type: ignore[attr-defined]  # made up
    with pytest.raises(WorkerFailed, match="an earlier result"):
        row.check_timed()


@pytest.mark.parametrize(("launches", "status"), [(3, "ok"), (2, "impossible")])
def test_a_download_may_take_as_much_longer_as_the_launches_before_it(launches: int, status: str) -> None:
    """Launches of 4 ms, and a download that takes 10 ms longer than the one after a single launch."""
    row = timed(MadeUpRunner([0.004], [0.010]))
    row.case = cast(Case, RightCase())
    row.repetitions = launches
    row.samples[0] = row.sample()
    row.check_timed()
    assert row.status == status


class TestOneRound:
    """A short budget leaves one round, whose only sample another process may have disturbed."""

    @pytest.mark.parametrize(
        ("further", "status"),
        [([0.0], "ok"), ([1.0, 0.0, 1.0, 0.0], "ok"), ([1.0], "impossible"), ([1.0, 0.0, 1.0], "impossible")],
    )
    def test_a_row_is_condemned_by_further_samples(self, further: list[float], status: str) -> None:
        """Work that is left over shows in nearly all of them. One disturbed download may hide it."""
        in_its_round, in_the_check = 1.0, 0.0
        row = timed(MadeUpRunner([0.004], [in_its_round, in_the_check, *further]))
        row.case = cast(Case, RightCase())
        row.repetitions = 3
        row.samples[0] = row.sample()
        row.check_timed()
        assert row.status == status
