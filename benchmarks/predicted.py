"""`python -m benchmarks.predicted`: how good the word of `predict` is on this machine, for two ranks of one thread.

Each kernel is predicted from its calls and from messages between ranks, measured apart. Then it runs on these ranks,
in a comparison. The same model speaks of other machines, where nobody measures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from rich.text import Text

from py_backends import registry
from py_backends.commands import _options
from py_backends.commands._options import Parser
from py_backends.commands.predict.plan import Request, report
from py_backends.display import console, layout, units
from py_backends.display.layout import Column, Section
from py_backends.harness.compare import compare
from py_backends.harness.sizing import grown
from py_backends.results.report import Estimate, Prediction

RANKS = 2
GROWN = 1 / 64, 1 / 8, 1 / 2
"""The work at which each kernel is predicted and measured, by that of its default sizes."""
SECONDS = 6.0
"""For the calls of a prediction, and for its comparison. Ranks, messages and memory take as long again."""
WIDEST, MOST_OFF, MOST_MISSED = 0.25, 0.10, 3
"""What is asked: the half-width of an interval over its figure, the median error, and how many intervals may miss."""


@dataclass(frozen=True)
class Pair:
    """A prediction, and what was measured; None if it did not run."""

    predicted: Prediction
    measured: float | None

    @property
    def error(self) -> float | None:
        """How far the prediction is off, as a part of what was measured."""
        return None if self.measured is None else self.predicted.seconds.value / self.measured - 1

    @property
    def inside(self) -> bool:
        """Whether the interval holds what was measured."""
        seconds = self.predicted.seconds
        return self.measured is not None and seconds.low <= self.measured <= seconds.high


def main(arguments: Sequence[str] | None = None) -> int:
    """Predict, measure and print. Returns 1 if a kernel did not run. SystemExit(2) for wrong usage."""
    parser = Parser(prog="python -m benchmarks.predicted", description="Compares predictions with measurements.")
    _options.add(parser, "kernel", kernel="all")
    options = parser.parse_args(sys.argv[1:] if arguments is None else list(arguments))
    pairs = list(_pairs(options))
    with console.output() as out:
        console.print_section(_section(pairs), out)
        out.print(Text(_verdict(pairs)))
    return int(any(pair.measured is None for pair in pairs))


def _pairs(options: argparse.Namespace) -> Iterator[Pair]:
    kernels = registry.kernel_names() if options.kernel in (None, ["all"]) else options.kernel
    chosen = [
        (kernel, grown(registry.problem(kernel), registry.problem(kernel).default_sizes, times))
        for kernel in kernels
        if registry.kernel_files(kernel, "mpi")
        for times in GROWN
    ]
    for kernel, sizes in chosen:
        request = Request([kernel], None, ["float32"], {kernel: [sizes]}, [RANKS], None, threads=1, budget=SECONDS)
        found = next(each for each in report(request, None).predictions if each.scaling == "strong")
        rows = compare(
            kernels=[kernel], backends=["mpi"], targets=[f"{RANKS}x1"], variants=[found.variant],
            shapes={kernel: [sizes]}, budget=SECONDS,
        ).rows  # fmt: skip
        times = [row.timed for row in rows if row.timed and row.requested is None]
        yield Pair(found, times[0].median if times else None)


def _section(pairs: Sequence[Pair]) -> Section:
    return Section(
        f"{RANKS} ranks of one thread on this machine, predicted and measured",
        "",
        [
            Column("kernel", [f"{pair.predicted.kernel} {pair.predicted.variant}" for pair in pairs], right=False),
            Column("shape", [units.short_shape(pair.predicted.shape) for pair in pairs], right=False),
            Column("predicted", [units.duration(pair.predicted.seconds.value) for pair in pairs]),
            Column("interval", [f"±{100 * half_width(pair.predicted.seconds):.0f}%" for pair in pairs]),
            Column("measured", ["" if pair.measured is None else units.duration(pair.measured) for pair in pairs]),
            Column("error", ["" if pair.error is None else f"{100 * pair.error:+.0f}%" for pair in pairs]),
            Column("inside", ["yes" if pair.inside else "no" for pair in pairs]),
        ],
    )


def half_width(found: Estimate) -> float:
    """Half of an interval, as a part of its figure."""
    return (found.high - found.low) / 2 / found.value


def _verdict(pairs: Sequence[Pair]) -> str:
    errors = [abs(pair.error) for pair in pairs if pair.error is not None]
    inside, widest = sum(pair.inside for pair in pairs), max(half_width(pair.predicted.seconds) for pair in pairs)
    return (
        f"{inside} of {layout.count(len(pairs), 'interval')} hold what was measured (asked: all but {MOST_MISSED}), "
        f"the median error is {100 * median(errors):.0f}% (asked: {100 * MOST_OFF:.0f}%), the widest interval "
        f"±{100 * widest:.0f}% (asked: {100 * WIDEST:.0f}%)."
    )


if __name__ == "__main__":
    sys.exit(main())
