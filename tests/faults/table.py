"""The table of faults: each by its name, with where it is and who must see it."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from py_backends import registry
from py_backends.kernel_text import KernelText

from . import answers, seen

HERE = Path(__file__).parent
WRITE, READ, RACE, OVERFLOW = "out-of-bounds write", "out-of-bounds read", "race", "overflow"
BARRIER = "barrier"
"""What instruments report."""
CLONE = HERE.parents[1]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something wrong.

    name: of this fault alone.
    where: a file of the clone, a kernel, `any kernel`, a backend or a source on ranks.
    tests: the files of tests that must see it, test_NAME.py somewhere below tests/.
    what: which instruments or kinds of the suite show it, for whoever reads the table.
    label: what the names of the tests that plant it have, if not its own.
    """

    name: str
    where: str
    tests: tuple[str, ...]
    what: str = ""
    label: str = ""

    @property
    def planted_by_runner(self) -> bool:
        """Whether the runner plants it, and the tests have to fail. Else they plant it themselves, and have to pass."""
        return False


@dataclass(frozen=True, kw_only=True)
class Change(Fault):
    """A fault in a file: what stands there, and what is put in its place. All but these is for tests that plant it.

    times: how often it stands there.
    source: of a kernel, where the file is a header of it.
    form: of that source, where it has several.
    instrument: the kind of fault, which decides what an instrument has to report.
    sizes: at which it does, in float32.
    compiler: the only one that sees it.
    """

    old: str
    new: str
    itself: bool
    times: int = 1
    source: str | None = None
    form: str | None = None
    instrument: str = ""
    sizes: tuple[int, ...] = ()
    compiler: str | None = None
    dtypes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    macros: tuple[str, ...] = ()

    @property
    def planted_by_runner(self) -> bool:
        return not self.itself

    @property
    def text(self) -> KernelText:
        """The kernel's source that it is in."""
        path = CLONE / (self.source or self.where)
        found = registry.kernel_texts(path.parts[-3], path.stem)[path.parts[-2]]
        assert found.path == path
        return found

    def planted(self, tree: Path = CLONE) -> str:
        """The file with the fault. AssertionError where its place has gone."""
        content = (tree / self.where).read_text(encoding="utf-8")
        there = content.count(self.old)
        assert there == self.times, f"{self.where} has {there} times {self.old!r}: plant {self.name!r} anew"
        return content.replace(self.old, self.new)

    def plant(self, tree: Path) -> None:
        """Change the file in a copy of the clone."""
        (tree / self.where).write_text(self.planted(tree), encoding="utf-8")

    def faulty_kernels(self, folder: Path) -> Path:
        """A copy of all kernels in a folder, one of which has the fault."""
        shutil.copytree(CLONE / "kernels", folder / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
        self.plant(folder)
        return folder / "kernels"

    def faulty_text(self, folder: Path) -> KernelText:
        """The kernel's source with the fault, a file in a folder, and beside it the header that has it, if one has."""
        text = self.text
        for file in {text.path, CLONE / self.where}:
            (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
        (folder / Path(self.where).name).write_text(self.planted(), encoding="utf-8")
        return replace(text, path=folder / text.path.name)


@cache
def changes() -> list[Change]:
    """All changes of files: of a kernel those in its folder, of the package those here."""
    files = [*HERE.glob("*.toml"), *sorted((CLONE / "kernels").glob("*/faults.toml"))]
    told = [tomllib.loads(path.read_text(encoding="utf-8"))["fault"] for path in files]
    return [_change(**each) for some in told for each in some]


def _change(file: str, test: str | None = None, planted_by: list[str] | None = None, **other: Any) -> Change:
    lists = {name: tuple(value) for name, value in other.items() if isinstance(value, list)}
    what = other.get("instrument") or ", ".join(lists.get("kinds", ()))
    tests = (test,) if test else tuple(planted_by or ())
    return Change(where=file, tests=tests, itself=test is None, what=what, **{**other, **lists})


def planted_by(test: str, *instruments: str) -> list[Change]:
    """The changes that a file of tests plants, of some kinds if they are named."""
    return [
        each
        for each in changes()
        if each.itself and test in each.tests and (not instruments or each.instrument in instruments)
    ]


def _of_answers() -> Iterator[Fault]:
    for kernel in registry.kernel_names():
        for wrong in answers.wrong(kernel):
            kinds = ", ".join(sorted(wrong.kinds))
            yield Fault(name=f"{kernel}: {wrong.name}", where=f"kernels/{kernel}", tests=("faults",), what=kinds)


def _of_programs() -> Iterator[Fault]:
    """In backends, sources on ranks and models, which tests run or replace."""
    for test, (where, names) in seen.BY_TESTS.items():
        for name, label in names.items():
            yield Fault(name=name, where=where, tests=(test,), label=label)


def the_first_now(faults: Sequence[Change]) -> list[Any]:
    """Faults as parameters, of which all but the first are for nightly runs: each takes seconds to compile."""
    return [pytest.param(each, id=each.name, marks=[pytest.mark.nightly] * (at > 0)) for at, each in enumerate(faults)]


@cache
def every() -> dict[str, Fault]:
    """The table by names. Several tests may see the same backend."""
    found: dict[str, Fault] = {}
    for each in (*changes(), *_of_answers(), *_of_programs()):
        before = found.get(each.name)
        assert before is None or before.where == each.where, f"two faults have the name {each.name!r}"
        found[each.name] = replace(each, tests=(*before.tests, *each.tests)) if before else each
    return found
