"""What `predict` says of exchanges, against SimGrid: it carries out the same ones by algorithms of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
import simulated

from py_backends import registry
from py_backends.commands.predict import analysis
from py_backends.commands.predict.analysis import Model
from py_backends.harness.sizing import grown
from py_backends.ranks import exchanges, traffic
from py_backends.ranks.costs import COMPUTING, LAUNCH, Machine
from py_backends.ranks.networks import network
from py_backends.ranks.outline import record
from py_backends.ranks.traffic import Round, Traffic
from py_backends.results.report import Estimate
from py_backends.results.spec import Sizes

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(not simulated.there(), reason=simulated.MISSING)]

PLAIN = network("latency=2us,bandwidth=12GB/s,overhead=0.5us")
assert PLAIN is not None
NO_TIME = {what: ((1.0, Estimate.exactly(0.0)),) for what in ("copies", "rows", "sums")}
Case = tuple[str, str]
"""A kernel and its variant."""
EVEN = 1024
"""Each size is a multiple of it, so that all ranks have as much. MPICH's ring sends uneven blocks in pieces of the
smallest one's size, and takes up to twice as long, which the prediction leaves out."""
CASES: dict[Case, Sizes] = {
    (problem.name, variant): problem.resized(
        grown(problem, problem.default_sizes, 100), lambda size: max(EVEN, size // EVEN * EVEN)
    )
    for problem in map(registry.problem, registry.kernel_names())
    for variant in registry.kernel_texts(problem.name, "mpi")
}
"""Every source of ranks, with about a hundred times the work of a comparison. A million messages are all in memory."""
RANKS = (16, 64, 256, 1024)
MEDIAN, WORST = 0.15, 1.5


def predicted(case: Case, ranks: int) -> float:
    """The seconds of the exchanges of a launch."""
    (kernel, variant), sizes = case, CASES[case]
    calls = {registry.problem(kernel).default_sizes: Estimate.exactly(1.0)}
    model = Model("mpi", kernel, variant, "float32", PLAIN, lambda _: Machine(1, calls, NO_TIME))
    found = model.launch(ranks, sizes).parts
    return sum(seconds.value for name, seconds in found.items() if name not in {COMPUTING, LAUNCH})


def ratio(case: Case, ranks: int, folder: Path) -> float:
    """The predicted time over the simulated one."""
    there = simulated.seconds(simulated.distributed(*case), ranks, CASES[case], PLAIN, folder)
    return predicted(case, ranks) / there


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_predictions_are_near_the_simulation(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """For 16 to 1,024 ranks. All to all on 1,024 are a million messages: ten minutes."""
    if not any(record(simulated.distributed(*case), rank, 16, CASES[case]).exchanges for rank in range(16)):
        assert not predicted(case, 16)
        return
    ratios = {ranks: ratio(case, ranks, tmp_path / str(ranks)) for ranks in RANKS}
    record_property("ratios", ratios)
    print(case, {ranks: f"{each:.3f}" for ranks, each in ratios.items()})
    assert median(abs(each - 1) for each in ratios.values()) <= MEDIAN, ratios
    assert all(1 / WORST <= each <= WORST for each in ratios.values()), ratios


def _rounds(change: Callable[[Round], Round]) -> Callable[[Callable[..., Traffic]], Callable[..., Traffic]]:
    """A fault in the rounds of an algorithm."""

    def broken(algorithm: Callable[..., Traffic]) -> Callable[..., Traffic]:
        def changed(*arguments: object) -> Traffic:
            found = algorithm(*arguments)
            return Traffic(tuple(map(change, found.rounds)), found.copied, found.strided, found.added)

        return changed

    return broken


FAULTS = {
    "too few messages": (
        "allgather",
        ("attention", "lecture"),
        _rounds(lambda each: Round(each.size, 1, each.times // 2)),
    ),
    "sums that every rank sends whole": (
        "reduce_scatter",
        ("matmul", "tuned"),
        _rounds(lambda each: Round(each.size * (each.times + 1), 1, each.times)),
    ),
    "a round of messages too many": (
        "allreduce",
        ("dot", "lecture"),
        _rounds(lambda each: Round(each.size, 1, 2 * each.times)),
    ),
    "a round for every rank before": (
        "exscan",
        ("scan", "lecture"),
        _rounds(lambda each: Round(each.size, 1, 1 << each.times)),
    ),
    "half of the bytes": (
        "alltoall",
        ("transpose", "lecture"),
        _rounds(lambda each: Round(each.size / 2, each.messages, each.times)),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_model_is_seen(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm, case, broken = FAULTS[fault]
    right = ratio(case, 64, tmp_path / "right")
    monkeypatch.setattr(traffic, algorithm, broken(getattr(traffic, algorithm)))
    analysis.classes.cache_clear()
    wrong = ratio(case, 64, tmp_path / "wrong")
    analysis.classes.cache_clear()
    assert abs(right - 1) <= MEDIAN < abs(wrong - 1)


def test_a_wrong_count_of_steps_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that the prediction sends in one direction alone."""
    original = exchanges.Sendrecv.traffic
    monkeypatch.setattr(
        exchanges.Sendrecv,
        "traffic",
        lambda each, rank: original(each, rank) if each.dest > rank else Traffic(),
    )
    analysis.classes.cache_clear()
    wrong = ratio(("heat", "tuned"), 16, tmp_path / "wrong")
    analysis.classes.cache_clear()
    assert abs(wrong - 1) > MEDIAN
