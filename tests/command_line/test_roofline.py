"""Percentages of ceilings, from made-up samples; and which ceilings rows need."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from py_backends import registry
from py_backends.contract import Target
from py_backends.errors import BackendUnavailable
from py_backends.harness import roofs
from py_backends.harness.roofs import Ceilings, Roof, place_under
from py_backends.harness.running_row import RunningRow
from py_backends.harness.timed_ceilings import CeilingWorker, TimedCeiling
from py_backends.kernel_text import KernelText
from py_backends.results.report import (
    COPIES,
    MULTIPLY_ADDS,
    READS,
    STORED,
    STORED_COPIES,
    STREAMED,
    STREAMED_COPIES,
)
from py_backends.results.roofline import ABOVE_ALL, UNCERTAIN
from py_backends.results.spec import Spec
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Prepared

ROUNDS = 8


def timed(
    kernel: str,
    sizes: tuple[int, ...],
    seconds: list[float] | float = 1.0,
    dtype: str = "float32",
    prepared: Prepared | WorkerFailed | None = None,
) -> RunningRow:
    """A row with these kernel times, as it is after its rounds."""

    def prepare(*_: object) -> Prepared:
        if isinstance(prepared, WorkerFailed):
            raise prepared
        return prepared or Prepared(0.0, None)

    problem = registry.problem(kernel)
    spec = Spec(kernel, "one", "cpu", "tuned", dtype, sizes)
    text = KernelText(problem, "tuned", "one", Path())
    times = [seconds] * ROUNDS if isinstance(seconds, float) else seconds
    samples: dict[int, Any] = {number: SimpleNamespace(kernel=each) for number, each in enumerate(times)}
    runner, case = SimpleNamespace(prepare=prepare), SimpleNamespace(sizes=sizes)
    made = RunningRow(spec, Target("cpu"), text, sizes=sizes, status="ok", samples=samples)
    return made.on(runner, case)  # type: ignore[arg-type]


def ceiling(kind: str, rates: list[float] | float, working_set: int | None = None) -> TimedCeiling:
    """A ceiling with these samples."""
    samples = [rates] * ROUNDS if isinstance(rates, float) else rates
    made = TimedCeiling(kind, "float32", "avx2", 2, working_set, lambda _: max(samples))
    made.samples.update(enumerate(samples))
    return made


def judged(row: RunningRow, flops: int, moved: int, *ceilings: TimedCeiling, more: float = 1.0) -> RunningRow:
    """The row, once judged by a roof of these ceilings, the peak first."""
    peak, *bandwidths = ceilings
    found = Ceilings(2)
    found._roofs[row] = Roof(flops, moved, peak, tuple(bandwidths), more)
    place_under([row], found)
    return row


PEAK, MEMORY = ceiling(MULTIPLY_ADDS, 100.0), ceiling(STORED, 10.0, 10**6)


@pytest.mark.parametrize(
    ("flops", "moved", "percent"),
    [
        (50, 1, 50.0),  # 50 operations at 100 a second take half a second at least
        (1, 8, 80.0),  # 8 bytes at 10 a second
        (60, 6, 60.0),  # where the roof has its edge
        (0, 7, 70.0),  # nothing is computed, and something moved
    ],
)
def test_the_percentage_is_that_of_the_lower_roof(flops: int, moved: int, percent: float) -> None:
    row = judged(timed("vecadd", (1,)), flops, moved, PEAK, MEMORY)
    assert row.percent_of_ceiling == pytest.approx(percent)
    assert (row.status, row.reason) == ("ok", None)


def test_the_best_bandwidth_of_a_round_counts() -> None:
    streamed = ceiling(STREAMED, 20.0, 10**6)
    assert judged(timed("vecadd", (1,)), 1, 8, PEAK, MEMORY, streamed).percent_of_ceiling == pytest.approx(40)


def test_what_slows_a_whole_round_cancels() -> None:
    drift = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
    slower = ceiling(MULTIPLY_ADDS, [100 / each for each in drift])
    row = judged(timed("matmul", (1, 1, 1), [2 * each for each in drift]), 50, 1, slower, MEMORY)
    assert row.percent_of_ceiling == pytest.approx(25)


def test_rounds_that_only_one_of_them_has_do_not_count() -> None:
    peak = ceiling(MULTIPLY_ADDS, [100.0, 100.0])
    row = judged(timed("matmul", (1, 1, 1), [1.0, 1.0, 0.001]), 50, 1, peak, MEMORY)
    assert row.percent_of_ceiling == pytest.approx(50)
    nothing = judged(timed("matmul", (1, 1, 1)), 50, 1, ceiling(MULTIPLY_ADDS, []), MEMORY)
    assert (nothing.percent_of_ceiling, nothing.status) == (None, "ok")


def test_more_cpus_than_threads_have_a_higher_ceiling() -> None:
    assert judged(timed("vecadd", (1,)), 50, 1, PEAK, MEMORY, more=4.0).percent_of_ceiling == pytest.approx(12.5)


@pytest.mark.parametrize("kernel", [1e-9, 1e-6, 0.4])
def test_a_figure_above_the_ceiling_is_impossible(kernel: float) -> None:
    row = judged(timed("matmul", (1, 1, 1), [kernel] * ROUNDS), 50, 1, PEAK, MEMORY)
    assert row.status == "impossible"
    assert row.reason is not None
    assert re.search(r" 0\.5 s .*\b50 .*\b1 bytes", row.reason)


def test_a_few_rounds_condemn_no_row_and_give_no_per_cent_above_the_ceiling() -> None:
    row = judged(timed("matmul", (1, 1, 1), [0.2] * 5), 50, 1, PEAK, MEMORY)
    assert (row.status, row.percent_of_ceiling, row.notes) == ("ok", None, [ABOVE_ALL])
    below = judged(timed("matmul", (1, 1, 1), [1.0] * 5), 50, 1, PEAK, MEMORY)
    assert (below.percent_of_ceiling, below.notes) == (pytest.approx(50), [])


@pytest.mark.parametrize(
    ("kernel", "peak", "status"),
    [
        ([0.1, 0.12, 0.1], [100.0, 30.0, 50.0], "impossible"),
        ([0.1, 0.2, 0.1], [100.0, 30.0, 50.0], "ok"),  # a sample of the row that is not far above
        ([0.1, 0.1, 0.1], [30.0, 20.0, 500.0], "ok"),  # one of the ceiling that is not far below
        ([0.001], [100.0], "impossible"),  # its ceilings have further samples
    ],
)
def test_a_few_rounds_condemn_a_row_whose_samples_are_all_far_above(
    kernel: list[float], peak: list[float], status: str
) -> None:
    """Results that are kept take no time. A short budget must not make them right."""
    memory = ceiling(STORED, [10.0] * len(peak), 10**6)
    row = judged(timed("matmul", (1, 1, 1), kernel), 50, 1, ceiling(MULTIPLY_ADDS, peak), memory)
    assert row.status == status
    assert (row.percent_of_ceiling is None) == (status == "ok")


@pytest.mark.parametrize("rounds", [3, ROUNDS])
def test_a_ceiling_that_was_disturbed_in_each_round_is_sampled_further(rounds: int) -> None:
    """Three processes that compute beside make all samples of a round ten times too low, and not all that follow."""
    further = iter([10.0, 9.0, 90.0])
    peak = ceiling(MULTIPLY_ADDS, [10.0] * rounds)
    peak.measure = lambda _: next(further)
    row = judged(timed("matmul", (1, 1, 1), [0.6] * rounds), 50, 1, peak, ceiling(STORED, [10.0] * rounds, 10**6))
    assert (row.status, row.notes, next(further, None)) == ("ok", [UNCERTAIN], None)


def test_a_ceiling_that_fails_then_is_that_of_the_rounds() -> None:
    peak = ceiling(MULTIPLY_ADDS, 100.0)

    def fail(_: object) -> float:
        raise WorkerFailed("error", "out of memory")

    peak.measure = fail
    assert judged(timed("matmul", (1, 1, 1), 0.1), 50, 1, peak, MEMORY).status == "impossible"


def test_a_figure_within_the_margin_is_none() -> None:
    just_below = 0.5 / (1 + roofs.MARGIN) * 1.001
    row = judged(timed("matmul", (1, 1, 1), just_below), 50, 1, PEAK, MEMORY)
    assert (row.status, round(row.percent_of_ceiling or 0)) == ("ok", round(100 * (1 + roofs.MARGIN)))


def test_a_median_above_the_ceiling_must_be_sure() -> None:
    uncertain = judged(timed("matmul", (1, 1, 1), [0.1] * 5 + [0.6] * 3), 50, 1, PEAK, MEMORY)
    assert (uncertain.status, uncertain.percent_of_ceiling, uncertain.notes) == ("ok", None, [ABOVE_ALL])


def test_a_ceiling_that_was_disturbed_condemns_no_row() -> None:
    disturbed = ceiling(MULTIPLY_ADDS, [50.0] * (ROUNDS - 1) + [100.0])
    row = judged(timed("matmul", (1, 1, 1), 0.55), 50, 1, disturbed, MEMORY)
    assert (row.status, row.percent_of_ceiling, row.notes) == ("ok", None, [UNCERTAIN])


def test_a_row_that_is_not_right_is_not_judged() -> None:
    row = timed("matmul", (1, 1, 1), 1e-6)
    row.status = "mismatch"
    assert (judged(row, 50, 1, PEAK, MEMORY).status, row.percent_of_ceiling) == ("mismatch", None)


class TestNeeded:
    """Which ceilings a set of rows needs."""

    @pytest.fixture(autouse=True)
    def _one_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(roofs, "instruction_sets", lambda *_: ["avx2", "sse"])
        monkeypatch.setattr(roofs, "measured_dtypes", lambda: {"float32", "float64"})
        monkeypatch.setattr(roofs.caches, "first_level_cache", lambda: 2**15)
        monkeypatch.setattr(roofs.machine, "cpus", lambda: 4)
        monkeypatch.setattr(roofs.machine, "free_memory", lambda: 2**40)
        monkeypatch.setattr(CeilingWorker, "sample", lambda *_: 1e9)

    def needed(self, *rows: RunningRow, threads: int = 2) -> set[tuple[str, str, int | None]]:
        return {(each.kind, each.dtype, each.working_set) for each in roofs.ceilings(rows, threads)}

    def test_one_peak_a_dtype_and_two_bandwidths_a_working_set(self) -> None:
        rows = [timed("vecadd", (10**6,)), timed("vecadd", (10**6,)), timed("vecadd", (10**6,), dtype="float64")]
        assert self.needed(*rows) == {
            (MULTIPLY_ADDS, "float32", None),
            (STREAMED, "float32", 12 * 10**6),
            (STORED, "float32", 12 * 10**6),
            (MULTIPLY_ADDS, "float64", None),
            (STREAMED, "float64", 24 * 10**6),
            (STORED, "float64", 24 * 10**6),
        }

    def test_small_working_sets_share_that_of_the_first_level_of_caches(self) -> None:
        found = self.needed(timed("vecadd", (1,)), timed("vecadd", (1000,)))
        assert {size for _, _, size in found} == {None, 2 * 2**14}

    def test_vast_ones_have_a_limit(self) -> None:
        found = self.needed(timed("vecadd", (2**29,)), timed("vecadd", (2**30,)))
        assert {size for _, _, size in found} == {None, roofs.LARGEST_WORKING_SET}

    def test_a_row_that_mostly_reads_may_come_near_to_what_reading_reaches(self) -> None:
        assert READS in {kind for kind, _, _ in self.needed(timed("matmul", (1, 500, 500)))}
        for sizes in (500, 500, 500), (500, 500, 1):
            assert READS not in {kind for kind, _, _ in self.needed(timed("matmul", sizes))}

    @pytest.mark.parametrize("sizes", [(0, 5, 5), (5, 5, 0)])
    def test_a_row_without_work_has_none(self, sizes: tuple[int, ...]) -> None:
        row = timed("matmul", sizes)
        found = roofs.ceilings([row], 2)
        assert list(found) == []
        assert place_under([row], found) == []
        assert row.percent_of_ceiling is None

    def test_a_row_whose_worker_died_has_none(self) -> None:
        assert self.needed(timed("vecadd", (9,), prepared=WorkerFailed("crashed", "it went"))) == set()

    def test_who_does_not_keep_to_threads_has_the_ceiling_of_all_cpus(self) -> None:
        free, bound = timed("vecadd", (9,), prepared=Prepared(0.0, None, obeys_threads=False)), timed("vecadd", (9,))
        found = roofs.ceilings([free, bound], 2)
        assert [roof.more for row in (free, bound) if (roof := found.roof(row))] == [2.0, 1.0]

    def test_more_threads_than_cpus_measure_nothing_better(self) -> None:
        assert {each.threads for each in roofs.ceilings([timed("vecadd", (9,))], 64)} == {4}

    def test_the_results_have_every_instruction_set_and_memory_in_and_out_of_caches(self) -> None:
        row = timed("vecadd", (10**6,))
        found = roofs.ceilings([row], 2)
        for each in found:
            each.samples[0] = 2e9
        record = place_under([row], found)
        assert {each.instruction_set for each in record if each.kind == MULTIPLY_ADDS} == {"avx2", "sse"}
        for kind in STREAMED, STORED:
            assert sorted(each.working_set_bytes or 0 for each in record if each.kind == kind) == [
                2 * 2**14,
                12 * 10**6,
                2**28,
            ]
        assert {each.unit for each in record} == {"gflops", "gbytes_per_second"}
        in_rounds = [each.summary() for each in found]
        assert {each.rate for each in in_rounds} == {2.0}
        assert {(each.rate, each.low, each.high) for each in record if each not in in_rounds} == {(1.0, 1.0, 1.0)}

    def test_with_little_time_the_results_have_one_sample_of_each(self, monkeypatch: pytest.MonkeyPatch) -> None:
        in_time = roofs.ceilings([timed("vecadd", (10**6,))], 2, 60.0)
        clock = iter(range(10**6))
        monkeypatch.setattr(roofs, "monotonic", lambda: next(clock))
        late = roofs.ceilings([timed("vecadd", (10**6,))], 2, roofs.LEAST_FOR_RECORD)
        assert {(each.rate, each.low) for each in place_under([], late)} == {(1.0, None)}
        assert [each.working_set_bytes for each in place_under([], late)] == [
            each.working_set_bytes for each in place_under([], in_time)
        ]

    def test_without_time_the_results_have_the_ceilings_of_rows_alone(self) -> None:
        """Memory beyond the caches takes longer to write than a small budget has for all rows together."""
        row = timed("vecadd", (10**6,))
        found = roofs.ceilings([row], 2, roofs.LEAST_FOR_RECORD / 2)
        assert {(each.kind, each.working_set_bytes) for each in place_under([row], found)} == {
            (MULTIPLY_ADDS, None),
            (STREAMED, 12 * 10**6),
            (STORED, 12 * 10**6),
        }

    def test_without_what_is_compiled_there_are_none_and_a_sentence_says_why(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def missing() -> list[str]:
            raise BackendUnavailable("its extension module has not been built", "make")

        monkeypatch.setattr(roofs, "instruction_sets", missing)
        row = timed("vecadd", (9,))
        found = roofs.ceilings([row], 2)
        assert (list(found), place_under([row], found)) == ([], [])
        assert found.why_none == "its extension module has not been built; make"
        assert (row.status, row.percent_of_ceiling) == ("ok", None)

    def test_a_format_has_the_peak_of_the_unit_that_is_best_for_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A row on a matrix unit would be above any other peak; memory is measured with vectors all the same."""

        def sets(dtype: str = "float32") -> list[str]:
            return ["amx", "avx512"] if dtype == "bfloat16" else ["avx512"]

        monkeypatch.setattr(roofs, "instruction_sets", sets)
        monkeypatch.setattr(roofs, "measured_dtypes", lambda: {"float32", "bfloat16"})
        needed = roofs.ceilings([timed("matmul", (64, 64, 64), dtype="bfloat16")], 2)
        assert {(each.kind, each.instruction_set) for each in needed} == {
            (MULTIPLY_ADDS, "amx"),
            (STREAMED_COPIES, "avx512"),  # half of what moves is written, in float32
            (STORED_COPIES, "avx512"),
        }

    def test_in_a_format_that_nothing_measures_there_are_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(roofs, "measured_dtypes", lambda: {"float64"})
        found = roofs.ceilings([timed("vecadd", (9,))], 2)
        assert list(found) == []
        assert "float32" in (found.why_none or "")

    def test_a_worker_that_fails_leaves_rows_without_and_says_why(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(*_: object) -> float:
            raise WorkerFailed("crashed", "the worker was ended by SIGILL")

        monkeypatch.setattr(CeilingWorker, "sample", fails)
        row = timed("vecadd", (9,))
        found = roofs.ceilings([row], 2)
        assert place_under([row], found) == []
        assert (found.why_none, row.percent_of_ceiling) == ("the worker was ended by SIGILL", None)

    def test_one_that_fails_during_the_rounds_is_told_as_well(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(CeilingWorker, "sample", lambda *_: 1e9)
        found = roofs.ceilings([timed("vecadd", (9,))], 2)
        assert found.why_none is None
        next(iter(found)).failed = WorkerFailed("timeout", "no answer to 'sample' within 120 s")
        assert found.why_none == "no answer to 'sample' within 120 s"


def test_the_worker_measures_every_kind() -> None:
    try:
        roofs.instruction_sets()
    except BackendUnavailable as missing:
        pytest.skip(missing.reason)
    with roofs.ceilings([timed("vecadd", (1000,)), timed("matmul", (1, 99, 99))], 2) as found:
        assert found.why_none is None
        assert found._worker._worker is not None
        for each in found:
            each.samples[0] = each.sample()
            assert each.samples[0] > 0
    assert found._worker._worker is None


class TestOnAGpu:
    """There may be no GPU at hand: ceilings that a device tells itself, of a made-up one."""

    def row(self, kernel: str, size: int, rates: dict[str | None, float | None], cache: int = 2**20) -> RunningRow:
        """A row on a GPU with such a cache, whose device tells these rates; a launch takes a second."""
        sizes = (size,) * len(registry.problem(kernel).dimensions)
        row = timed(kernel, sizes, prepared=Prepared(0.0, None, on_cpu=False, cache_bytes=cache))
        row.target = replace(row.target, device="a GPU")
        row.runner.ceiling = rates.__getitem__  # type: ignore[method-assign]  # the runner is made up, too
        return row

    def percent(self, row: RunningRow, *others: RunningRow) -> tuple[float | None, list[tuple[str, str, float]]]:
        """What is said of the row once all ceilings were sampled, and which these were."""
        found = roofs.ceilings([row, *others], threads=2)
        for each, number in itertools.product(found, range(ROUNDS)):
            each.samples[number] = each.sample()
        known = place_under([row, *others], found)
        return row.percent_of_ceiling, [(each.device, each.kind, each.rate) for each in known]

    def test_its_memory_is_a_ceiling_beyond_its_caches(self) -> None:
        percent, known = self.percent(self.row("vecadd", 10**6, {"float32": 1e12, None: 24e6}))
        assert percent == pytest.approx(50)  # 12 MB at 24 MB a second
        assert known == [("a GPU", MULTIPLY_ADDS, 1000.0), ("a GPU", COPIES, 0.024)]

    def test_within_its_caches_only_the_peak_is_known(self) -> None:
        by_peak = self.row("matmul", 1000, {"float32": 4e9, None: 1e12}, cache=2**30)
        by_memory = self.row("vecadd", 1000, {"float32": 4e9, None: 1e9}, cache=2**30)
        assert self.percent(by_peak)[0] == pytest.approx(50)  # 2 GFLOP at 4 a second
        assert self.percent(by_memory)[0] is None

    def test_a_device_that_tells_nothing_has_none(self) -> None:
        assert self.percent(self.row("vecadd", 1000, {"float32": None})) == (None, [])

    def test_another_backend_that_tells_nothing_of_the_device_takes_no_ceiling_away(self) -> None:
        told = {"float32": 1e12, None: 24e6}
        row, other = self.row("vecadd", 10**6, told), self.row("vecadd", 10**6, {"float32": None})
        assert self.percent(row, other)[1] == [("a GPU", MULTIPLY_ADDS, 1000.0), ("a GPU", COPIES, 0.024)]
