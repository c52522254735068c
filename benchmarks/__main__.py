"""`python -m benchmarks`: measures what the tuned kernels are held to, and prints a line for each figure."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import goals, lines
from benchmarks.contenders import Conditions
from benchmarks.figures import Figure, figure
from benchmarks.measure import Reports, measure
from benchmarks.table import print_all
from py_backends.commands import _options
from py_backends.commands._options import Parser, whole_number
from py_backends.commands._run import progress
from py_backends.display import console
from py_backends.errors import WrongRequest
from py_backends.harness.compare import checked_settings
from py_backends.limits import MOST_THREADS
from py_backends.system.files import check_writable, write_whole, written

_DEFAULT_ROUNDS, _DEFAULT_BUDGET = 21, 1800.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. SystemExit(2) for wrong usage.

    Returns 0 when measured, whatever was reached; 1 if the file was not written; 130 after an interruption.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = _parser()
    options = parser.parse_args(arguments)
    known = goals.goals(options.dtype, options.sizes, options.elements, options.kernel, options.threads)
    chosen = [goal for goal in known if goal.backend in options.only]
    if not chosen:
        parser.error(f"{', '.join(options.only)} has no goal in {', '.join(options.kernel)}: choose others")
    command = shlex.join(["python -m benchmarks", *arguments])
    settings = checked_settings(options.threads, options.seed, options.budget, command=command)
    with progress() as shown:
        reports = measure(chosen, settings, options.rounds, shown)
    figures = [figure(goal, reports) for goal in chosen]
    # Before the tables, which a closed terminal may end. Where it fails, they are all that is left of the measurements.
    whole = options.json is None or written(options.json, lambda path: write_whole(path, to_json(figures, reports)))
    one = next(iter(reports.values()))
    taken = sum(report.seconds_taken or 0 for report in reports.values())
    with console.output() as out:
        print_all(replace(one, settings=settings, seconds_taken=taken), figures, reports, out)
    return 130 if any(report.interrupted for report in reports.values()) else int(not whole)


def to_json(figures: Sequence[Figure], reports: Reports) -> str:
    """Everything as strict JSON: the figures of the goals, and the comparisons that they were made of."""
    fields = {
        "schema_version": 2,
        "figures": [_figure_fields(each) for each in figures],
        "comparisons": [
            {"under": _under(conditions)} | json.loads(report.to_json()) for conditions, report in reports.items()
        ],
    }
    return json.dumps(fields, indent=1, allow_nan=False) + "\n"


def _under(conditions: Conditions) -> dict[str, Any]:
    fields = {"threads": conditions.threads, "environment": dict(conditions.environment)}
    return fields | ({"skew": conditions.skew} if conditions.skew else {})


def _figure_fields(each: Figure) -> dict[str, Any]:
    goal, value, reason = each.goal, each.value, each.reason
    return {
        "kernel": goal.conditions.kernel, "dtype": goal.conditions.dtype, "backend": goal.backend,
        "subject": goal.subject, "ratio": goal.what, "where": goal.where, "asked": goal.asked, "at_most": goal.at_most,
        "figure": value and value.value, "low": value and value.low, "high": value and value.high,
        "reached": each.reached, "reason": reason and reason.text, "fix": reason and reason.fix,
        "note": each.note,
    }  # fmt: skip


def _parser() -> Parser:
    parser = Parser(
        prog="python -m benchmarks",
        description="Measures what the tuned kernels are held to, all in one run, each contender in its own process.",
        epilog="example: python -m benchmarks --only avx --dtype float32 --budget 60",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--only",
        type=_names(goals.BACKENDS),
        default=goals.BACKENDS,
        metavar="NAMES",
        help=f"of {', '.join(goals.BACKENDS)}",
    )
    add(
        "--kernel",
        type=_names(goals.KERNELS),
        default=goals.KERNELS,
        metavar="NAMES",
        help=f"of {', '.join(goals.KERNELS)}",
    )
    add(
        "--dtype",
        type=_names(lines.DTYPES),
        default=lines.DTYPES,
        metavar="NAMES",
        help=f"of {', '.join(lines.DTYPES)}",
    )
    add("--sizes", type=_sizes, default=lines.SIZES, metavar="N,N", help="of square matrices, in place of the eight")
    add("--elements", type=_whole(2**31), default=lines.ELEMENTS, metavar="N", help="of large vectors (default: 2^26)")
    add("--threads", type=_whole(MOST_THREADS), metavar="N", help="of everybody (default: all)")
    add("--rounds", type=_whole(1000), default=_DEFAULT_ROUNDS, metavar="N", help="at most (default: 21)")
    _options.add(parser, "budget", "seed", budget=_DEFAULT_BUDGET)
    add("--json", type=_file, metavar="FILE", help="write everything, every sample too")
    return parser


def _names(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def names(text: str) -> tuple[str, ...]:
        found = known if text == "all" else tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        for name in found:
            if name not in known:
                raise argparse.ArgumentTypeError(f"unknown name {name!r}: there are {', '.join(known)}")
        return tuple(found)

    return names


def _whole(most: int) -> Callable[[str], int]:
    return partial(whole_number, least=1, most=most)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({_whole(2**16)(part.strip()) for part in text.split(",")}))


def _file(text: str) -> Path:
    path = Path(text)
    try:
        check_writable(path)
    except WrongRequest as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return path


if __name__ == "__main__":
    sys.exit(main())
