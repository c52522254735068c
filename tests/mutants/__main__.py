"""`python -m tests.mutants`: how many wrong kernels the conformance suite notices."""

from __future__ import annotations

import argparse
import math
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from py_backends import registry
from py_backends.commands._options import Parser, whole_number
from py_backends.errors import WrongRequest

from . import equivalent, report, texts
from .judge import CAUGHT, JUDGES, QUICK, STILLBORN, SURVIVED, Verdict
from .mutant import Mutant, mutants_of
from .results import Results
from .session import Session, sample
from .texts import Machine

_ENOUGH = 95.0
"""Per cent of the mutants of each programming model that are to be caught."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run mutants; 0 where enough are caught of each model, 1 where not, 2 or SystemExit(2) for wrong usage.

    Where none was run it is 1. Of a sample it is 1 where, with a confidence of 95%, not enough of all would be caught.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        results = Results.read(options.json)
    except ValueError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    everyone = [
        mutant for backend in texts.backends() for text in texts.texts_of(backend) for mutant in mutants_of(text)
    ]
    try:
        _check_names(everyone, options)
    except WrongRequest as wrong:
        parser.error(str(wrong))
    entries = equivalent.every()
    try:
        equivalent.check(everyone, entries)
    except equivalent.OutOfDate as lost:
        print(f"equivalent.toml is out of date:\n{lost}", file=sys.stderr)
        return 1
    chosen = [mutant for mutant in everyone if _is_chosen(mutant, options)]
    reasons = equivalent.reasons(chosen, entries)
    if options.list:
        for mutant in chosen:
            print(
                report.survivor(report.Outcome(mutant, "equivalent" if mutant.identifier in reasons else "mutant", ""))
            )
        return 0
    machines = {name: Machine(name) for name in sorted({mutant.backend for mutant in chosen})}
    elsewhere = equivalent.needs(chosen, entries) | _elsewhere(chosen, machines)
    skipped = elsewhere.keys() | (set() if options.equivalent else reasons.keys())
    drawn = sample((mutant for mutant in chosen if mutant.identifier not in skipped), options.most, options.seed)
    todo = [mutant for mutant in drawn if _is_to_run(mutant, results, options.again)]
    with tempfile.TemporaryDirectory() as temporary:
        session = Session(options.scratch or Path(temporary), machines, results, options.json, options.by)
        session.run(todo, options.jobs, options.seconds, _Teller(len(todo)))
    found = report.outcomes(chosen, results, reasons, elsewhere)
    print(report.text(found))
    for failure in session.failures:
        print(f"not judged: {failure}", file=sys.stderr)
    if options.markdown:
        command = shlex.join(["python", "-m", "tests.mutants", *_without_files(arguments)])
        options.markdown.write_text(report.markdown(found, command), encoding="utf-8")
    enough = _is_enough(found, reasons, shown=options.seconds == 0)
    return 0 if enough and not session.failures else 1


def _parser() -> Parser:
    parser = Parser(
        prog="python -m tests.mutants",
        description="Breaks the kernels' texts in one place at a time, and counts what the conformance suite catches.",
        epilog="example: python -m tests.mutants --backend opencl --kernel matmul --most 20 --json mutants.json",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--backend", type=_names, metavar="NAMES", help="of these programming models; all by default")
    add("--kernel", type=_names, metavar="NAMES", help="of these kernels; all by default, with the host's part")
    add("--variant", type=_names, metavar="NAMES", help="of these variants")
    add("--kind", type=_names, metavar="NAMES", help="changes of these kinds, for instance barrier,wait")
    add("--only", type=_names, metavar="IDS", help="these mutants alone")
    add(
        "--most",
        type=partial(whole_number, least=1, most=math.inf),
        metavar="N",
        help="of each programming model, drawn by lot; all by default",
    )
    add("--seed", type=int, default=1, metavar="N", help="of the lot")
    add("--seconds", type=float, default=float("inf"), metavar="N", help="begin no mutant after these; 0 shows results")
    add("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="mutants at a time")
    add("--again", type=_names, default=set(), metavar="OUTCOMES", help="run those with this outcome again")
    add("--by", choices=JUDGES, default=QUICK, help="who judges: the suite by its extent, or as `make test`, the tests")
    add("--equivalent", action="store_true", help="run those too that are listed as equivalent: the suite must pass")
    add("--json", type=Path, metavar="FILE", help="go on with the results in FILE, and keep all there")
    add("--markdown", type=Path, metavar="FILE", help="write a page of the results")
    add("--scratch", type=Path, metavar="FOLDER", help="keep the copies of the clone there, and what they have built")
    add("--list", action="store_true", help="show the mutants, and run none")
    return parser


def _names(given: str) -> set[str]:
    return set(given.split(","))


def _check_names(mutants: Sequence[Mutant], options: argparse.Namespace) -> None:
    """Raise WrongRequest, in one line, for a name that nothing has: it would choose nothing."""
    users = [user for mutant in mutants for user in mutant.text.users]
    for what, names, there in (
        ("backend", options.backend, texts.backends()),
        ("kernel", options.kernel, dict.fromkeys(kernel for kernel, _ in users)),
        ("variant", options.variant, dict.fromkeys(variant for _, variant in users)),
        ("kind", options.kind, dict.fromkeys(mutant.change.kind for mutant in mutants)),
        ("outcome", options.again, (CAUGHT, SURVIVED, STILLBORN)),
    ):
        for name in sorted(names or ()):
            registry.known(name, there, what)
    for name in sorted((options.only or set()) - {mutant.identifier for mutant in mutants}):
        raise WrongRequest(f"unknown mutant {name!r}: --list shows their names")


def _is_chosen(mutant: Mutant, options: argparse.Namespace) -> bool:
    kernels = {kernel for kernel, _ in mutant.text.users}
    variants = {variant for _, variant in mutant.text.users}
    return (
        (options.backend is None or mutant.backend in options.backend)
        and (options.kernel is None or bool(kernels & options.kernel))
        and (options.variant is None or bool(variants & options.variant))
        and (options.kind is None or mutant.change.kind in options.kind)
        and (options.only is None or mutant.identifier in options.only)
    )


def _elsewhere(mutants: Sequence[Mutant], machines: dict[str, Machine]) -> dict[str, str]:
    """Why this machine cannot run a mutant, by identifier, of those that it cannot."""
    places = {mutant.identifier: machines[mutant.backend].place(mutant.text, mutant.context) for mutant in mutants}
    return {name: place.elsewhere for name, place in places.items() if place.elsewhere}


def _is_to_run(mutant: Mutant, results: Results, again: set[str]) -> bool:
    known = results.verdicts.get(mutant.identifier)
    return known is None or known.outcome in again


class _Teller:
    """Prints a line for each mutant as soon as it is judged."""

    def __init__(self, count: int) -> None:
        self._count, self._done = count, 0

    def __call__(self, mutant: Mutant, verdict: Verdict) -> None:
        self._done += 1
        line = report.survivor(report.Outcome(mutant, verdict.outcome, verdict.by))
        by = f"   by: {verdict.by}" if verdict.by else ""
        print(f"{self._done}/{self._count}  {verdict.seconds:.1f} s  {line}{by}", flush=True)


def _is_enough(found: Sequence[report.Outcome], equivalents: dict[str, str], *, shown: bool) -> bool:
    """Whether enough mutants of each model were caught, and none that is listed as equivalent.

    shown: whether nothing was to be run. Else a model of which nothing was run, though it could be, has not enough.
    """
    wrongly_listed = [each for each in found if each.what == CAUGHT and each.mutant.identifier in equivalents]
    for outcome in wrongly_listed:
        print(f"listed as equivalent, but {report.survivor(outcome)}   by: {outcome.by}")
    of_models = report.counted(found)
    idle = [name for name, counts in of_models.items() if not report.ran(counts) and counts[report.NOT_RUN]]
    if not shown and (idle or not any(map(report.ran, of_models.values()))):
        print(f"no mutant was run of {', '.join(idle) or 'those that were chosen'}", file=sys.stderr)
        return False
    bounds = map(report.percent_bounds, of_models.values())
    return not wrongly_listed and all(each is None or each[1] >= _ENOUGH for each in bounds)


def _without_files(arguments: Sequence[str]) -> list[str]:
    """The command line without the options that name files and the time, which decide nothing."""
    kept, left_out = [], False
    for argument in arguments:
        name = argument.partition("=")[0]
        if name in {"--json", "--markdown", "--scratch", "--seconds"}:
            left_out = "=" not in argument
        elif left_out:
            left_out = False
        else:
            kept.append(argument)
    return kept


if __name__ == "__main__":
    sys.exit(main())
