"""`python -m benchmarks`: measures what the tuned kernels are held to, and prints a line for each figure."""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import monotonic

import py_backends
from benchmarks import goals
from benchmarks.figures import Figure, figure
from benchmarks.measure import Measurement, Progress, Run
from benchmarks.table import print_all, rate
from py_backends._contract import MOST_THREADS
from py_backends.commands.arguments import Parser, seconds, whole_number
from py_backends.harness import machine
from py_backends.harness.files import write_whole
from py_backends.harness.results import Report
from py_backends.report import table

KERNELS = ("matmul", "vecadd")
BACKENDS = ("avx", "openmp", "cpp", "opencl", "sycl", "numba_cpu", "cuda", "numba_cuda")
_DEFAULT_ROUNDS, _DEFAULT_BUDGET = 21, 600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 when measured, whatever was reached, and SystemExit(2) for wrong usage."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser().parse_args(arguments)
    report = Report(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        package_version=py_backends.__version__,
        machine={"busy_cpus": machine.busy_cpus(), **machine.describe()},
        settings={
            "seed": options.seed,
            "threads": options.threads or machine.cpus(),
            "budget_seconds": options.budget,
            "rounds": options.rounds,
            "command": shlex.join(["python -m benchmarks", *arguments]),
        },
    )
    begin = monotonic()
    chosen = [
        goal
        for goal in goals.goals(options.dtype, options.sizes, options.elements, options.kernel)
        if goal.backend in options.only
    ]
    measurement = Measurement()
    try:
        with _progress() as progress, Run(options.threads, options.seed, progress, measurement) as run:
            run.measure(chosen, options.rounds, options.budget)
    except KeyboardInterrupt:
        report.interrupted = True
    report.seconds_taken = monotonic() - begin
    figures = [figure(goal, measurement) for goal in chosen]
    if options.json:
        write_whole(options.json, to_json(report, figures, measurement))
    with table.output() as out:
        print_all(report, figures, measurement, out)
    return 130 if report.interrupted else 0


def to_json(report: Report, figures: Sequence[Figure], measurement: Measurement) -> str:
    """Everything as strict JSON: the figures of the goals, and what they were made of."""
    fields = {
        "schema_version": 1,
        "created": report.created,
        "package_version": report.package_version,
        "machine": report.machine,
        "settings": report.settings,
        "seconds_taken": report.seconds_taken,
        "interrupted": report.interrupted,
        "figures": [_figure_fields(each) for each in figures],
        "entries": [
            {
                "contender": asdict(entry.contender) | {"environment": dict(entry.contender.environment)},
                "kernel": entry.kernel, "dtype": entry.dtype, "n": entry.size,
                "rate": rate(measurement, entry), "seconds": list(samples.values()), "rounds": list(samples),
            }
            for entry, samples in measurement.samples.items()
        ],
    }  # fmt: skip
    return json.dumps(fields, indent=1, allow_nan=False) + "\n"


def _figure_fields(each: Figure) -> dict[str, object]:
    goal, value, reason = each.goal, each.value, each.reason
    return {
        "kernel": goal.kernel, "dtype": goal.dtype, "backend": goal.backend, "subject": goal.subject,
        "ratio": goal.what, "where": goal.where, "asked": goal.asked, "at_most": goal.at_most,
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
    add("--only", type=_names(BACKENDS), default=BACKENDS, metavar="NAMES", help=f"of {', '.join(BACKENDS)}")
    add("--kernel", type=_names(KERNELS), default=KERNELS, metavar="NAMES", help="of matmul, vecadd")
    add("--dtype", type=_names(goals.DTYPES), default=goals.DTYPES, metavar="NAMES", help="of float32, float64")
    add("--sizes", type=_sizes, default=goals.SIZES, metavar="N,N", help="of square matrices, in place of the eight")
    add("--elements", type=_whole(2**31), default=goals.ELEMENTS, metavar="N", help="of large vectors (default: 2^26)")
    add("--threads", type=_whole(MOST_THREADS), metavar="N", help="of everybody (default: all)")
    add("--rounds", type=_whole(1000), default=_DEFAULT_ROUNDS, metavar="N", help="at most (default: 21)")
    add(
        "--budget",
        type=seconds,
        default=_DEFAULT_BUDGET,
        metavar="SECONDS",
        help="for the rounds; there are at least 6, and preparing comes on top (default: 600)",
    )
    add("--seed", type=_whole(2**62), default=1, metavar="N", help="of the inputs and the order (default: 1)")
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
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{path} cannot be written: name a file in a folder that exists")
    return path


@contextmanager
def _progress() -> Iterator[Progress]:
    """A line on standard error that says what runs; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update


if __name__ == "__main__":
    sys.exit(main())
