"""How often `choose` is wrong, by simulation: its own rounds and its own answers, for calls whose times are drawn.

    python tests/command_line/simulated_choices.py --runs 10000

Each call varies by 10% from round to round. A run is wrong if it says that a call is behind which is not, or that calls
are the same which differ by a tenth. Of calls that differ by 1% exactly, none is behind.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import NamedTuple, cast

import numpy as np

from py_backends.commands.choose.analysis import Standing, choices
from py_backends.commands.choose.plan import race
from py_backends.contract import Target
from py_backends.harness.case import Case
from py_backends.harness.pairing import Group
from py_backends.harness.running_row import RunningRow
from py_backends.harness.summary import row_of
from py_backends.results.report import Check, Report, Row
from py_backends.results.spec import Spec
from py_backends.results.verdicts import FASTER, MARGIN, SAME, WIDEST_SAME
from py_backends.workers.runner import Runner, Sample

SIZE = 1000
NOISE = 0.1
"""The standard deviation of the logarithm of a call's times."""
SCENARIOS = {
    "two equal calls": (1.0, 1.0),
    "two calls that differ by 1%": (1.0, 1 + MARGIN),
    "five equal calls": (1.0,) * 5,
    "twelve equal calls": (1.0,) * 12,
    "two calls that differ by 20%": (1.0, 1.2),
    "twelve calls that differ by 20% and more": tuple(1.2**power for power in range(12)),
}
"""The true seconds of the calls."""


class Outcome(NamedTuple):
    """A run: what it says of each call but the quickest, and the rounds after which it says so.

    answers: by the number of the call.
    """

    best: int
    answers: dict[int, str | None]
    rounds: int

    def wrong(self, seconds: Sequence[float]) -> bool:
        """Whether it says anything that is not so."""
        same = 1 + WIDEST_SAME
        return any(
            (answer == FASTER and not seconds[at] > (1 + MARGIN) * seconds[self.best])
            or (answer == SAME and not 1 / same < seconds[at] / seconds[self.best] < same)
            for at, answer in self.answers.items()
        )

    def alone(self) -> bool:
        """Whether one call stands alone."""
        return set(self.answers.values()) == {FASTER}


def simulated(seconds: Sequence[float], runs: int, *, noise: float = NOISE, seed: int = 1) -> Iterator[Outcome]:
    """Runs of `choose` for calls that take so many seconds on average."""
    for run in range(runs):
        generator = np.random.default_rng([seed, run])
        rows = [_timed_row(at) for at in range(len(seconds))]
        group, number = Group(rows, None), 0
        while chosen := race([group]):
            for row in chosen:
                taken = seconds[_number(row.spec)] * float(np.exp(noise * generator.standard_normal()))
                row.samples[number] = Sample(upload=0.0, kernel=taken, download=0.0, end_to_end=taken, drain=0.0)
            number += 1
        standing = _answer(rows)
        answers = {_number(row): standing.ahead[id(row)].verdict for row in standing.rows[1:]}
        yield Outcome(_number(standing.best), answers, number)


def _timed_row(at: int) -> RunningRow:
    spec = Spec("vecadd", f"call{at}", "cpu", "tuned", "float32", (SIZE,), statement="a call")
    case = cast(Case, type("Sizes", (), {"sizes": (SIZE,)})())
    row = RunningRow(spec, Target("cpu"), None, threads=1, controls=False, sizes=spec.sizes, status="ok")
    row.check = Check(True, "bitwise", 0.0)
    return row.on(cast(Runner, None), case)


def _number(row: Row | Spec) -> int:
    return int(row.backend.removeprefix("call"))


def _answer(rows: Sequence[RunningRow]) -> Standing:
    """What `choose` reads from the results of the run."""
    asked = Row("vecadd", "call0", "cpu", "tuned", "float32", {"n": SIZE}, "skipped", threads=1)
    made = [asked, *map(row_of, rows)]
    (choice,) = choices(Report("", "", {}, {"seed": 1, "budget_seconds": 60.0}, made))
    return choice.calls


def main() -> None:
    """Print for each scenario how many runs were wrong, and how many rounds they took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", choices=SCENARIOS, action="append")
    asked = parser.parse_args()
    for name in asked.only or SCENARIOS:
        seconds = SCENARIOS[name]
        found = list(simulated(seconds, asked.runs))
        wrong = 100 * mean(outcome.wrong(seconds) for outcome in found)
        alone = 100 * mean(outcome.alone() for outcome in found)
        rounds = mean(outcome.rounds for outcome in found)
        print(f"{name}: wrong {wrong:.1f}%, one alone {alone:.1f}%, rounds {rounds:.0f}", flush=True)


if __name__ == "__main__":
    main()
