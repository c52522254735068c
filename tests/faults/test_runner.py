"""The runner of planted faults: what it takes for a caught fault, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from . import __main__ as runner
from .table import Change, Fault

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


def change(name: str, test: str, old: str = "return 2") -> Change:
    return Change(name=name, where="py_backends/thing.py", tests=(test,), old=old, new="return 3", itself=False)


FAULTS = [
    *(change(test, test) for test in ("seen", "blind", "broken")),
    change("lost", "seen", "return 4"),
    *(Fault(name=name, where="any kernel", tests=("planting",)) for name in ("reported", "unreported", "forgotten")),
    Fault(name="without its tool", where="any kernel", tests=("planting",)),
    Fault(name="of a program", where="any kernel", tests=("program",)),
]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone with a module, and tests: one sees a fault in it, one does not, one fails, and one plants some."""
    tests = {"seen": SEEN, "blind": BLIND, "broken": BROKEN, "planting": PLANTING}
    files = {
        "py_backends/__init__.py": "",
        "py_backends/conformance/__init__.py": "",
        "py_backends/conformance/entry.py": "",  # an installed py-backends names it as a plug-in of pytest
        "tests/conftest.py": "def pytest_addoption(parser):\n    parser.addoption('--thorough', action='store_true')\n",
        "py_backends/thing.py": "def two():\n    return 2\n",
        **{f"tests/by_subject/test_{name}.py": text for name, text in tests.items()},
        **dict.fromkeys(runner._FILES, ""),
    }
    for name in runner._FOLDERS:
        (tmp_path / name).mkdir()
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(runner, "CLONE", tmp_path)
    monkeypatch.setattr(runner, "every", lambda: {fault.name: fault for fault in FAULTS})


@pytest.mark.parametrize(
    ("names", "code", "words"),
    [
        (["seen"], 0, "seen: caught: FAILED tests/by_subject/test_seen.py"),
        (["blind"], 1, "blind: not caught"),
        (["lost"], 1, "lost: not caught: py_backends/thing.py has 0 times 'return 4'"),
        (["broken"], 1, "broken: not caught: without it fails FAILED"),
        (["reported"], 0, "reported: caught: tests/by_subject/test_planting.py::test_it[reported]"),
        (["unreported"], 1, "unreported: not caught: tests/by_subject/test_planting.py::test_it[unreported]"),
        (["forgotten"], 0, "forgotten: not tried: test_planting leaves it out"),
        (["forgotten", "--thorough"], 1, "forgotten: not caught: test_planting has no test of it"),
        (["without its tool"], 0, "without its tool: not tried: skipped: no such tool"),
        (["of a program"], 0, "of a program: not tried: tests/**/program.py plants it"),
        ([], 1, "2 of 9 planted faults were caught; 3 were not tried"),
    ],
)
@pytest.mark.usefixtures("clone")
def test_a_fault_is_caught_by_tests_that_pass_without_it(
    names: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runner.main(names) == code
    assert words in capsys.readouterr().out


@pytest.mark.usefixtures("clone")
def test_what_was_found_is_written(tmp_path: Path) -> None:
    runner.main(["reported", "--json", str(tmp_path / "found.json")])
    (found,) = json.loads((tmp_path / "found.json").read_text())
    assert (found["fault"], found["status"]) == ("reported", "caught")


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
