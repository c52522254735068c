"""`python -m benchmarks.skew`: the rate of a histogram over the share of elements that meet in one bin.

    python -m benchmarks.skew --backend cpp,openmp,avx --svg skew.svg

The other elements are uniform. Every backend is a row at each share, with inputs of its own. All rows are sampled in
the same rounds of one comparison, in a random order. So what slows the machine for a while slows all shares alike. A
share is told by its number of elements, which differ by one from share to share.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py_backends import registry
from py_backends.commands import _options
from py_backends.commands._options import Parser
from py_backends.commands._run import progress
from py_backends.display import console, layout, style, units
from py_backends.display.drawable import drawable
from py_backends.display.layout import Column, Section
from py_backends.errors import WrongRequest
from py_backends.harness.compare import checked_settings, run
from py_backends.harness.plan import Plan
from py_backends.number_formats import DTYPES
from py_backends.results.report import Report, Row
from py_backends.results.spec import Spec
from py_backends.results.statistics import Median, median
from py_backends.system.files import check_writable, write_whole
from py_backends.workers.probe import BackendTarget

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KERNEL = "histogram"
SHARES = (0.0, 0.125, 0.25, 0.5, 0.75, 0.875, 1.0)
_BACKENDS = "cpp,openmp,avx,numba_cpu"
_ELEMENTS, _BUDGET, _RUNS = 2**24, 60.0, 8


@dataclass(frozen=True)
class Line:
    """A source on a target: its rates in GB/s by the share of elements in one bin, as far as it was timed."""

    name: str
    rates: dict[float, Median]

    @property
    def kept(self) -> float | None:
        """The rate where all elements are in one bin, over that of uniform ones."""
        first, last = self.rates.get(SHARES[0]), self.rates.get(SHARES[-1])
        return last.value / first.value if first and last else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and draw. Returns 1 if a row went wrong. SystemExit(2) for wrong usage."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = _parser()
    asked = parser.parse_args(arguments)
    try:
        if asked.svg:
            style.check_library()
            check_writable(asked.svg)
        settings = checked_settings(asked.threads, asked.seed, asked.budget, command="python -m benchmarks.skew")
        with progress() as shown:
            report = measured(asked, settings, shown)
        found = lines(report, asked.elements)
        if asked.svg:
            style.save(draw(drawable(report), asked.elements), asked.svg)
    except WrongRequest as wrong:
        parser.error(str(wrong))
    if asked.json:
        write_whole(asked.json, report.to_json())
    with console.output() as out:
        console.print_section(section(found, asked.dtype, asked.elements), out)
        for row in report.rows:
            if row.status != "ok":
                out.print(f"{row.backend} {row.target} {row.variant}: {row.reason}", highlight=False)
        if disturbed := layout.disturbance(report):
            out.print(disturbed)
    return int(any(row.status in ("wrong", "error") for row in report.rows))


def measured(asked: argparse.Namespace, settings: dict[str, Any], shown: Any) -> Report:
    """One comparison of all backends at all shares."""

    def specs(found: Sequence[BackendTarget]) -> list[Spec]:
        made = []
        for backend in asked.backend:
            able = [
                target
                for name, target in found
                if name == backend and registry.texts_in(asked.dtype, KERNEL, backend, target)
            ]
            target = next((each for each in able if each.available and not each.emulated), able[0] if able else None)
            if target is None:
                raise WrongRequest(f"{backend} has no {KERNEL} in {asked.dtype}")
            texts = registry.texts_in(asked.dtype, KERNEL, backend, target)
            for variant in asked.variant or [next(iter(texts))]:
                made += [
                    Spec(KERNEL, backend, target.name, variant, asked.dtype, (asked.elements + at,))
                    for at in range(len(SHARES))
                    if variant in texts
                ]
        return made

    problem: Any = registry.problem(KERNEL)
    with problem.skewed(lambda n: _share(n, asked.elements)):
        return run(
            Plan(asked.backend, specs, timed_only=True, runs=_RUNS, shorten=False, controls=False), settings, shown
        )


def _share(n: int, elements: int) -> float:
    """The share that so many elements stand for; 0 for those of ceilings and of estimates."""
    return SHARES[n - elements] if 0 <= n - elements < len(SHARES) else 0.0


def lines(report: Report, elements: int) -> list[Line]:
    """The rates of each source."""
    found: dict[str, dict[float, Median]] = {}
    for row in report.rows:
        seconds = [each for each in row.kernel_seconds if each is not None]
        if row.status == "ok" and seconds:
            moved = registry.problem(row.kernel).bytes(_sizes(row), _dtype(row))
            rates = [moved / each / 1e9 for each in seconds]
            share = _share(_sizes(row)[0], elements)
            found.setdefault(f"{row.backend} {row.target} {row.variant}", {})[share] = median(rates)
    return [Line(name, rates) for name, rates in found.items()]


def _sizes(row: Row) -> tuple[int, ...]:
    return tuple(int(each) for each in row.shape.values())


def _dtype(row: Row) -> Any:
    import numpy as np

    return np.dtype(row.dtype)


def section(found: Sequence[Line], dtype: str, elements: int) -> Section:
    """A line for each source, with its rate at each share."""
    kept = ["" if line.kept is None else f"{line.kept:.2f}" for line in found]
    return Section(
        f"{KERNEL}  {dtype}  {elements}",
        "GB/s by the share of elements in one bin; the last column is the last rate over the first",
        [
            Column("source", [line.name for line in found], right=False),
            *(
                Column(
                    f"{share:.3g}",
                    [units.figure(line.rates[share].value) if share in line.rates else "" for line in found],
                )
                for share in SHARES
            ),
            Column("1 / 0", kept),
        ],
    )


@style.settings()
def draw(report: Report, elements: int) -> Figure:
    """A line for each source: its rate over the share. NothingToDraw if none was timed at two shares."""
    found = [line for line in lines(report, elements) if len(line.rates) > 1]
    if not found:
        raise style.NothingToDraw("no row was timed at two shares: give a longer --budget")
    figure, axes = style.new(8.5, 4.5)
    marks = style.marks(line.name for line in found)
    for line in sorted(found, key=lambda line: -line.rates[min(line.rates)].value):
        shares = sorted(line.rates)
        mark = marks[line.name]
        axes.plot(
            shares,
            [line.rates[share].value for share in shares],
            color=mark.colour,
            marker=mark.marker,
            markersize=4,
            label=line.name,
        )
    axes.set_xlabel("share of the elements that are in one bin; the others are uniform")
    axes.set_ylabel("GB/s")
    axes.set_yscale("log")  # what collisions cost is a factor
    axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set_title(f"{KERNEL}, {elements} elements", loc="left")
    return figure


def _parser() -> Parser:
    parser = Parser(
        prog="python -m benchmarks.skew",
        description="Measures the rate of a histogram over the share of elements that meet in one bin.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--backend", type=_names, default=_names(_BACKENDS), metavar="NAMES", help=f"default: {_BACKENDS}")
    add("--variant", type=_names, default=(), metavar="NAMES", help="default: the default one of each backend")
    add("--dtype", choices=DTYPES, default="float32", help="default: float32")
    add("--elements", type=int, default=_ELEMENTS, metavar="N", help="default: 2^24")
    _options.add(parser, "threads", "budget", "seed", budget=_BUDGET)
    add("--svg", type=Path, metavar="FILE", help="draw it there")
    add("--json", type=Path, metavar="FILE", help="write every sample there")
    return parser


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",")))


if __name__ == "__main__":
    sys.exit(main())
