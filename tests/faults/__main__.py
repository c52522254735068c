"""Plants faults one by one, and says which were caught.

    python -m tests.faults [NAME...] [--json FILE] [--list] [--by JUDGE] [--quick | --thorough]

A change of a module is made in a copy of the clone, where a test that passes without it must fail. All other faults are
planted by the tests that must see them, and these must pass. With `--by`, changes of sources are made in a copy too,
and judged as mutants are (tests.mutants): by the conformance suite, or by the tests that `make test` has of a source.
What these do not see, the files of tests that are named for it judge, if they run after a change of the source.

Tests are run as `make test` runs them after the change. What that leaves out, and what this machine lacks, is said not
to be tried. The exit code is 1 where a fault was not caught, where what it changes is not there, or where tests fail
without it. It is 2 for wrong usage.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from py_backends import registry
from py_backends.commands._options import Parser
from py_backends.errors import WrongRequest

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest does: the tools of tests/ find each other by it
from mutants.judge import JUDGES, TESTS

from .outcomes import CAUGHT, MISSED, NOT_TRIED, Outcome, judged
from .table import CLONE, Change, Fault, every

_FOLDERS = ("py_backends", "kernels", "tests", "benchmarks", "docs", "examples")
_FILES = ("CMakeLists.txt", "pyproject.toml")
_PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
_AFTER_ANY_CHANGE = ("--changed", ".")


def main(arguments: Sequence[str]) -> int:
    """Plant faults; 1 where one was not caught, SystemExit(2) for wrong usage."""
    parser = Parser(prog="python -m tests.faults", description="Plants faults one by one, and says which were caught.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of faults, see --list; all where there is none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found there")
    parser.add_argument("--list", action="store_true", help="print all faults, where they are and who must see them")
    parser.add_argument(
        "--by", choices=JUDGES, help="have the suite look for changes of sources, or tests of models, as for mutants"
    )
    how = parser.add_mutually_exclusive_group()
    for extent in ("--quick", "--thorough"):
        how.add_argument(
            extent, dest="extent", action="append_const", const=extent, help="of the tests, as pytest takes it"
        )
    asked, table = parser.parse_args(arguments), every()
    try:
        chosen = [table[registry.known(name, table, "fault")] for name in asked.names or table]
    except WrongRequest as wrong:
        parser.error(str(wrong))
    if not chosen:
        parser.error("there is no fault to plant")
    if asked.list:
        for fault in chosen:
            print(
                f"{fault.name} | {fault.where} | {', '.join(fault.tests)} {fault.what and f'({fault.what})'}".rstrip()
            )
        return 0
    found = []
    for outcome in outcomes(chosen, asked.extent or [], by=asked.by):
        print(f"{outcome.fault}: {outcome.status}{outcome.by and f': {outcome.by}'}"[:200], flush=True)
        found.append(outcome)
    if asked.json:
        asked.json.write_text(json.dumps([outcome._asdict() for outcome in found], indent=1), encoding="utf-8")
    counts = Counter(outcome.status for outcome in found)
    not_tried = f"; {counts[NOT_TRIED]} not tried" if counts[NOT_TRIED] else ""
    print(f"{counts[CAUGHT]} of {len(found)} planted faults were caught{not_tried}")
    return int(counts[MISSED] > 0)


def outcomes(faults: Iterable[Fault], options: Sequence[str], *, by: str | None = None) -> Iterator[Outcome]:
    """What becomes of each fault: first of those that tests plant, then of those that are planted in a copy."""
    every_one = list(faults)
    changes = [fault for fault in every_one if isinstance(fault, Change) and fault.planted_by_runner]
    of_sources = [fault for fault in every_one if by and isinstance(fault, Change) and not fault.planted_by_runner]
    by_tests = [fault for fault in every_one if fault not in (*changes, *of_sources)]
    left = {fault.name: list(fault.tests) for fault in by_tests}
    found: dict[str, list[Outcome]] = {fault.name: [] for fault in by_tests}
    for test in dict.fromkeys(test for fault in by_tests for test in fault.tests):
        for outcome in _of_tests(test, [fault for fault in by_tests if test in fault.tests], options):
            found[outcome.fault].append(outcome)
            left[outcome.fault].remove(test)
            if not left[outcome.fault]:
                yield min(found[outcome.fault], key=_worst)
    if changes:
        yield from _in_a_copy(changes, options)
    if by:
        yield from _of_sources(of_sources, by, options)


def _of_sources(changes: Sequence[Change], by: str, options: Sequence[str]) -> Iterator[Outcome]:
    """What becomes of changes of sources. What tests of models do not see, the files named for it may."""
    by_name, unseen = {each.name: each for each in changes}, []
    for outcome in judged(changes, by):
        if by == TESTS and outcome.status != CAUGHT:
            unseen.append(outcome)
        else:
            yield outcome
    again = [replace(by_name[each.fault], tests=(test,)) for each in unseen for test in by_name[each.fault].tests]
    seen = {each.fault: each for each in _in_a_copy(again, options) if each.status == CAUGHT}
    yield from (seen.get(each.fault, each) for each in unseen)


def _worst(outcome: Outcome) -> int:
    """All tests of a fault must see it that are there at all."""
    return (MISSED, CAUGHT, NOT_TRIED).index(outcome.status)


def _of_tests(test: str, faults: Sequence[Fault], options: Sequence[str]) -> Iterator[Outcome]:
    """Have a file of tests plant faults, all at once. Each must be seen by all tests there that have its name."""
    path = _file_of(test, CLONE)
    if path is None:
        for fault in faults:
            yield Outcome(fault.name, NOT_TRIED, f"tests/**/{test}.py plants it")
        return
    looked = _run([*_PYTEST, *options, *_AFTER_ANY_CHANGE, "--collect-only", path], CLONE)
    if looked.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        for fault in faults:
            yield Outcome(fault.name, MISSED, f"test_{test} cannot be collected")
        return
    collected = looked.stdout.splitlines()
    of_each = {fault.name: [node for node in collected if _is_of(node, fault)] for fault in faults}
    nodes = list(dict.fromkeys(node for some in of_each.values() for node in some))
    said = _told(nodes, options) if nodes else {}
    for fault in faults:
        results = {node: said.get(node, "it did not run") for node in of_each[fault.name]}
        failed = [f"{node}: {why}" for node, why in results.items() if why and not why.startswith(_SKIPPED)]
        skipped = [why for why in results.values() if why and why.startswith(_SKIPPED)]
        if failed or (not results and "--thorough" in options):
            yield Outcome(fault.name, MISSED, failed[0] if failed else f"test_{test} has no test of it")
        elif not results or len(skipped) == len(results):
            yield Outcome(fault.name, NOT_TRIED, skipped[0] if skipped else f"test_{test} leaves it out")
        else:
            yield Outcome(fault.name, CAUGHT, next(node for node, why in results.items() if not why))


_SKIPPED = "skipped: "


def _is_of(node: str, fault: Fault) -> bool:
    """Whether a test's name has the fault's, as a parameter or as all of it."""
    _, _, name = node.partition("::")
    return bool(re.search(rf"(?:^|[\[:-]){re.escape(fault.label or fault.name)}(?:$|[\]\[-])", name))


def _told(nodes: Sequence[str], options: Sequence[str]) -> dict[str, str]:
    """What is wrong with each test that ran, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        _run(
            [*_PYTEST, *options, *_AFTER_ANY_CHANGE, "-o", "junit_family=xunit1", f"--junitxml={report}", *nodes], CLONE
        )
        cases = ElementTree.parse(report).iter("testcase") if report.exists() else []  # noqa: S314  # pytest wrote it
        found = {}
        for case in cases:
            outcome = next((each for each in case if each.tag in {"failure", "error", "skipped"}), None)
            skipped = _SKIPPED if outcome is not None and outcome.tag == "skipped" else ""
            why = "" if outcome is None else skipped + (outcome.get("message") or "it failed").splitlines()[0]
            name = f"{case.get('file')}::{case.get('name')}"
            found[next((node for node in nodes if _without_class(node) == name), name)] = why
        return found


def _without_class(node: str) -> str:
    file, _, name = node.partition("::")
    function, bracket, parameters = name.partition("[")
    return f"{file}::{function.rpartition('::')[2]}{bracket}{parameters}"


def _in_a_copy(changes: Sequence[Change], options: Sequence[str]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory(prefix="py-backends-faults-") as folder:
        clone = Path(folder)
        for name in _FOLDERS:
            shutil.copytree(CLONE / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in _FILES:
            shutil.copy(CLONE / name, clone)
        sound: dict[str, str] = {}
        for change in changes:
            test = _file_of(change.tests[0], clone) or f"test_{change.tests[0]}.py"
            if test not in sound:
                sound[test] = _what_fails(test, clone, [*options, *_AFTER_ANY_CHANGE])
            yield _planted(change, clone, options, test, sound[test])


def _what_fails(test: str, clone: Path, options: Sequence[str]) -> str:
    """The first test of a file that fails, or nothing."""
    ended = _run([*_PYTEST, "-x", *options, test], clone)
    if ended.returncode == pytest.ExitCode.OK:
        return ""
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0] if failed else f"exit code {ended.returncode}: {ended.stdout[-500:]}{ended.stderr[-500:]}"


def _planted(change: Change, clone: Path, options: Sequence[str], test: str, without: str) -> Outcome:
    """What becomes of a change, given what fails without it: then tests say nothing of it."""
    if without:
        return Outcome(change.name, MISSED, f"without it fails {without}")
    path = clone / change.where
    before = path.read_text(encoding="utf-8")
    try:
        change.plant(clone)
    except AssertionError as lost:
        return Outcome(change.name, MISSED, str(lost))
    try:
        failed = _what_fails(test, clone, [*options, "--changed", change.where])
    finally:
        path.write_text(before, encoding="utf-8")
    return Outcome(change.name, CAUGHT if failed else MISSED, failed)


def _file_of(test: str, clone: Path) -> str | None:
    """The file test_NAME.py, wherever it lies below tests/."""
    found = sorted((clone / "tests").rglob(f"test_{test}.py"))
    return str(found[0].relative_to(clone)) if found else None


def _run(command: Sequence[str], clone: Path) -> subprocess.CompletedProcess[str]:
    # Python would take the bytecode of a module that was replaced within a second by one of the same length.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False, env=environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
