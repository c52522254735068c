"""How often verdicts are wrong, and how many differences they find, by simulation: the rounds and the verdicts of runs.

    python tests/harness/simulated_verdicts.py --runs 200

Thirty rows and two controls are compared with a baseline. In each round every time is that of the row, times

- the drift of the machine, which all rows of a round share: 20% up and down in the course of a run;
- the place of its arrays, which is drawn anew in each round: a deviation of 1, 2 or 4%;
- other noise with long tails, of Student's distribution with 3 degrees of freedom: of the size of the places.

A run ends after as many samples as 40 rounds of all rows have. Decided rows leave theirs to the others.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np

from py_backends.contract import Target
from py_backends.harness.case import Case
from py_backends.harness.pairing import Group
from py_backends.harness.running_row import RunningRow
from py_backends.harness.schedule import until_known
from py_backends.harness.summary import judge
from py_backends.results.spec import Spec
from py_backends.results.verdicts import FASTER, SLOWER
from py_backends.workers.runner import Runner, Sample

ROWS, ROUNDS, SIZE = 30, 40, 1000
DIFFERENCES = 0.0, 0.03, 0.05, 0.10, 0.30
DEVIATIONS = 0.01, 0.02, 0.04


class Outcome(NamedTuple):
    """A run: the verdicts on its rows and controls, and how many samples a row had on average."""

    verdicts: list[str]
    samples: float


def simulated(seconds: Sequence[float], runs: int, deviation: float, seed: int = 1) -> Iterator[Outcome]:
    """Runs of rows that take so many seconds on average, and of the baseline, which takes one."""
    for run in range(runs):
        generator = np.random.default_rng([seed, run])
        baseline, *controls = (_row("numpy") for _ in range(3))
        rows = [_row(f"row{at}") for at in range(len(seconds))]
        truth = {**dict.fromkeys((baseline, *controls), 1.0), **dict(zip(rows, seconds, strict=True))}
        group, left = Group([baseline, *rows], baseline, controls), ROUNDS * len(truth)
        number = 0
        while (chosen := until_known([group])) and left >= len(chosen):
            drift = 1 + 0.2 * math.sin(number / 7)
            for row in chosen:
                noise = deviation * (generator.standard_normal() + generator.standard_t(3) / math.sqrt(3))
                taken = truth[row] * drift * math.exp(noise)
                row.samples[number] = Sample(upload=0.0, kernel=taken, download=0.0, end_to_end=taken, drain=0.0)
            left, number = left - len(chosen), number + 1
        judged, (control,) = judge([group])
        said = [each.verdict or "" for each in (*map(judged.get, rows), control.first, control.second) if each]
        yield Outcome(said, float(np.mean([len(row.samples) for row in rows])))


def _row(backend: str) -> RunningRow:
    spec = Spec("vecadd", backend, "cpu", "lecture", "float32", (SIZE,))
    case = cast(Case, type("Sizes", (), {"sizes": (SIZE,)})())
    return RunningRow(spec, Target("cpu"), None, sizes=spec.sizes, status="ok").on(cast(Runner, None), case)


def main() -> None:
    """Print for each deviation and difference what was said of the rows, and in how many runs anything was false."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    asked = parser.parse_args()
    for deviation in DEVIATIONS:
        for difference in DIFFERENCES:
            found = list(simulated([1 / (1 + difference)] * ROWS, asked.runs, deviation))
            of_rows = Counter(said for outcome in found for said in outcome.verdicts[:ROWS])
            shares = {said: f"{100 * count / ROWS / len(found):.1f}%" for said, count in of_rows.items()}
            equal = slice(0 if difference == 0 else ROWS, None)
            wrong = sum(bool({FASTER, SLOWER} & {*outcome.verdicts[equal]}) for outcome in found)
            samples = np.mean([outcome.samples for outcome in found])
            print(
                f"places deviate by {100 * deviation:.0f}%, rows differ by {100 * difference:.0f}%: {shares}; "
                f"a false claim in {wrong} of {len(found)} runs; {samples:.0f} samples a row",
                flush=True,
            )


if __name__ == "__main__":
    main()
