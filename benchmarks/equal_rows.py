"""How often verdicts are wrong on this machine, and what they find: rows that are equal, and rows that wait.

    python -m benchmarks.equal_rows --runs 40 --json equal.json

Each run has workers of its own. NumPy, OpenMP and OpenCL compute all kernels, at small sizes and at their default ones.
Each is compared with a copy of itself, and NumPy also with copies that wait 5, 10 and 20% of the time of each launch.
Rounds and verdicts are those of `compare`, over all rows of a run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median, stdev
from time import monotonic

from py_backends import registry
from py_backends.contract import Target
from py_backends.harness.pairing import Group
from py_backends.harness.pool import Pool
from py_backends.harness.request import Request
from py_backends.harness.rounds import run_rounds
from py_backends.harness.running_row import RunningRow, running_rows
from py_backends.harness.schedule import in_new_processes, placed_anew, until_known
from py_backends.harness.sizing import grown
from py_backends.harness.summary import judge
from py_backends.results.report import Speedup
from py_backends.results.spec import Sizes
from py_backends.results.verdicts import FASTER, LOOKS, NEW_PROCESSES, SLOWER, UNCLEAR
from py_backends.system import machine
from py_backends.workers import probe
from py_backends.workers.runner import Runner

from . import waiting

SMALL = 1 / 256
"""The work of a kernel's small sizes, by that of its default ones. Their arrays fit a core's second cache."""
BASELINE, BACKENDS = "numpy", ("numpy", "openmp", "opencl")
SHARES = 0.05, 0.10, 0.20
"""Of its launch's time, how long a copy waits."""
_MOST_ROUNDS = 500


@dataclass(frozen=True)
class Judged:
    """A copy beside its row. waits: the share of its time that it waits. speedup: over its row; above 1 is faster."""

    kernel: str
    sizes: Sizes
    backend: str
    waits: float
    speedup: float
    low: float | None
    high: float | None
    verdict: str
    rounds: int

    @property
    def is_false(self) -> bool:
        """Whether the claim is wrong. A row that waits may be called the same: the verdict allows for 10%."""
        return self.verdict == FASTER or (self.verdict == SLOWER and not self.waits)


def one_run(found: Sequence[probe.BackendTarget], seed: int, budget: float) -> list[Judged]:
    """Every copy of one run, judged after rounds of so many seconds. Raises RuntimeError for a wrong row."""
    with ExitStack() as stack:
        pool = stack.enter_context(Pool(machine.cpus(), seed))
        target = next(target for backend, target in found if backend == BASELINE)
        waiters = {share: stack.enter_context(closing(_waiter(target, share))) for share in SHARES}
        sizes = _sizes()
        request = Request(list(sizes), BACKENDS, shapes=sizes, every_target=False)
        rows = running_rows(request.specs(found), found, machine.cpus())
        waits: dict[RunningRow, float] = {}
        groups = []
        for row in (row for row in rows if row.text is not None):
            _begin(row.on(pool.runner_of(row), pool.case(row.problem, row.spec.sizes, row.dtype)))
            copies = {row.copy_on(pool.runner_of(row, 1)): 0.0}
            if row.spec.backend == BASELINE:
                copies |= {row.copy_on(runner): share for share, runner in waiters.items()}
            for copy in copies:
                _begin(copy)
            waits |= copies
            groups.append(Group([row, *copies], row))
        _rounds(groups, random.Random(seed), budget)
        judged, _ = judge(groups)
        return [_judged(copy, judged[copy], share) for copy, share in waits.items()]


def _sizes() -> dict[str, list[Sizes]]:
    """Small sizes of every kernel, and its default ones."""
    problems = map(registry.problem, registry.kernel_names())
    return {each.name: [grown(each, each.default_sizes, SMALL), each.default_sizes] for each in problems}


def _rounds(groups: Sequence[Group], order: random.Random, budget: float) -> None:
    numbers = itertools.count()

    def next_rows() -> Sequence[RunningRow]:
        rows = until_known(groups)
        if next(numbers) in NEW_PROCESSES:
            in_new_processes(rows)
        return placed_anew(rows, order)

    run_rounds(next_rows, monotonic() + budget, order, lambda *_: None, most=_MOST_ROUNDS, least=LOOKS)


def _waiter(target: Target, share: float) -> Runner:
    environment = {**target.environment, waiting.SHARE: str(share)}
    return Runner(BASELINE, replace(target, environment=environment), machine.cpus(), module=waiting.__name__)


def _begin(row: RunningRow) -> None:
    """Check a row, and prepare it for timing."""
    row.try_once()
    if row.status != "ok" or not row.settle():
        raise RuntimeError(f"{row.title} is not right: {row.reason}")
    row.calls = 1  # only kernels are judged here


def _judged(copy: RunningRow, versus: Speedup, share: float) -> Judged:
    row = copy.spec
    assert versus.verdict is not None
    return Judged(
        row.kernel,
        row.sizes,
        row.backend,
        share,
        versus.speedup,
        versus.low,
        versus.high,
        versus.verdict,
        versus.rounds,
    )


def summary(runs: Sequence[Sequence[Judged]]) -> Iterator[str]:
    """Lines about all runs so far."""
    false = sum(any(each.is_false for each in run) for run in runs)
    yield f"a false claim in {false} of {len(runs)} runs"
    for share in (0.0, *SHARES):
        of_share = [each for run in runs for each in run if each.waits == share]
        said = {
            word: sum(each.verdict == word for each in of_share) / len(of_share)
            for word in (SLOWER, "same", UNCLEAR, FASTER)
        }
        logs = [math.log(each.speedup * (1 + share)) for each in of_share]
        halves = [math.log(each.high / each.low) / 2 for each in of_share if each.low and each.high]
        yield (
            f"waits {share:.0%}: {', '.join(f'{word} {part:.1%}' for word, part in said.items())} of {len(of_share)}; "
            f"ratios deviate by {stdev(logs):.1%}, intervals by ±{median(halves or [math.nan]):.1%}, "
            f"{median(each.rounds for each in of_share):.0f} rounds"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each run, and the summary. Returns 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.equal_rows", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of rounds in each run (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; each has the next")
    parser.add_argument("--json", type=Path, help="write every verdict of every run there, after each run")
    asked = parser.parse_args(arguments)
    found = probe.probe(BACKENDS)
    for backend, target in found:
        if not target.available or target.emulated:
            print(f"without {backend} on {target.name}: {target.reason}", file=sys.stderr)
    found = [each for each in found if each.target.available and not each.target.emulated]
    runs = []
    for seed in range(asked.seed, asked.seed + asked.runs):
        begin = monotonic()
        runs.append(one_run(found, seed, asked.budget))
        wrong = [
            f"{each.kernel} {each.sizes} {each.backend} {each.verdict} {each.speedup:.2f}x"
            for each in runs[-1]
            if each.is_false
        ]
        print(
            f"run {len(runs)}: {len(runs[-1])} rows, {monotonic() - begin:.0f} s, false: {', '.join(wrong) or 'none'}",
            flush=True,
        )
        if asked.json:
            asked.json.write_text(json.dumps([[asdict(each) for each in run] for run in runs]), encoding="utf-8")
    print("\n".join(summary(runs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
