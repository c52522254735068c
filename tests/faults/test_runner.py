"""The runner of planted faults: what it takes for a caught fault, and what it refuses."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from . import __main__ as runner
from .outcomes import as_mutant
from .table import Change, Fault, changes

pytestmark = pytest.mark.slow

SEEN = "from py_backends.thing import two\n\n\ndef test_it():\n    assert two() == 2\n"
BLIND = "def test_it():\n    pass\n"
BROKEN = "def test_it():\n    raise AssertionError\n"
PLANTING = """
import pytest

@pytest.mark.parametrize("fault", ["reported", "unreported", "unreported too", "without its tool"])
def test_it(fault):
    if "tool" in fault:
        pytest.skip("no such tool")
    assert fault == "reported"
"""
OTHERS = PLANTING.replace('== "reported"', '== "unreported"')


def change(name: str, test: str, old: str = "return 2") -> Change:
    return Change(name=name, where="py_backends/thing.py", tests=(test,), old=old, new="return 3", itself=False)


ANY_OPTIONS = """
def pytest_addoption(parser):
    parser.addoption("--thorough", action="store_true")
    parser.addoption("--changed")
"""
FAULTS = [
    *(change(test, test) for test in ("seen", "blind", "broken")),
    change("lost", "seen", "return 4"),
    *(Fault(name=name, where="any kernel", tests=("planting",)) for name in ("reported", "unreported", "forgotten")),
    Fault(name="without its tool", where="any kernel", tests=("planting",)),
    Fault(name="reported twice", where="any kernel", tests=("planting", "program"), label="reported"),
    Fault(name="reported once", where="any kernel", tests=("planting", "others"), label="reported"),
    Fault(name="of a program", where="any kernel", tests=("program",)),
]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A clone with a module, and tests: one sees a fault in it, one does not, one fails, and others plant some."""
    folder = tmp_path_factory.mktemp("clone")
    tests = {"seen": SEEN, "blind": BLIND, "broken": BROKEN, "planting": PLANTING, "others": OTHERS}
    files = {
        "py_backends/__init__.py": "",
        "py_backends/conformance/__init__.py": "",
        "py_backends/conformance/entry.py": "",  # an installed py-backends names it as a plug-in of pytest
        "tests/conftest.py": ANY_OPTIONS,
        "py_backends/thing.py": "def two():\n    return 2\n",
        **{f"tests/by_subject/test_{name}.py": text for name, text in tests.items()},
        **dict.fromkeys(runner._FILES, ""),
    }
    for name in runner._FOLDERS:
        (folder / name).mkdir()
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "CLONE", folder)
        patch.setattr(runner, "every", lambda: {fault.name: fault for fault in FAULTS})
        yield folder


@pytest.fixture(scope="module")
def said(clone: Path) -> tuple[int, str, list[dict[str, str]]]:
    """How a run with all of them ended, what it printed, and what it wrote."""
    printed, file = io.StringIO(), clone / "found.json"
    with redirect_stdout(printed):
        code = runner.main(["--json", str(file)])
    return code, printed.getvalue(), json.loads(file.read_text())


@pytest.mark.parametrize(
    "words",
    [
        "seen: caught: FAILED tests/by_subject/test_seen.py",
        "blind: not caught\n",
        "lost: not caught: py_backends/thing.py has 0 times 'return 4'",
        "broken: not caught: without it fails FAILED",
        "reported: caught: tests/by_subject/test_planting.py::test_it[reported]",
        "unreported: not caught: tests/by_subject/test_planting.py::test_it[unreported]",
        "forgotten: not tried: test_planting leaves it out",
        "without its tool: not tried: skipped: no such tool",
        "of a program: not tried: tests/**/program.py plants it",
        "reported twice: caught: tests/by_subject/test_planting.py::test_it[reported]",
        "reported once: not caught: tests/by_subject/test_others.py::test_it[reported]",
        "3 of 11 planted faults were caught; 3 not tried",
    ],
)
def test_a_fault_is_caught_by_tests_that_pass_without_it(
    said: tuple[int, str, list[dict[str, str]]], words: str
) -> None:
    assert words in said[1]


def test_what_was_missed_is_the_exit_code(said: tuple[int, str, list[dict[str, str]]]) -> None:
    code, _, written = said
    assert code == 1
    assert [each["fault"] for each in written if each["status"] == "caught"] == ["reported", "reported twice", "seen"]


@pytest.mark.usefixtures("clone")
def test_all_tests_must_have_a_test_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["forgotten"]) == 0
    assert runner.main(["forgotten", "--thorough"]) == 1
    assert "forgotten: not caught: test_planting has no test of it" in capsys.readouterr().out


def test_a_change_of_a_source_is_a_mutant_of_it() -> None:
    for change in changes():
        if not change.planted_by_runner:
            mutant = as_mutant(change)
            assert mutant.content.decode() == change.planted()
            assert mutant.text.users == ((change.text.kernel, change.text.variant),)


@pytest.mark.usefixtures("clone")
def test_a_list_plants_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--list", "blind"]) == 0
    assert capsys.readouterr().out == "blind | py_backends/thing.py | blind\n"


@pytest.mark.usefixtures("clone")
def test_an_unknown_fault_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        runner.main(["seen", "sein"])
    assert ended.value.code == 2
    assert "'seen'" in capsys.readouterr().err


def test_no_fault_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "every", dict)
    with pytest.raises(SystemExit) as ended:
        runner.main([])
    assert ended.value.code == 2
