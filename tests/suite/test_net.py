"""The tools that hold large changes: what they refuse, and what they take for a caught fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run_python
from net import planted
from net.planted import Planted

pytestmark = pytest.mark.slow

SEEN = "from py_backends.thing import two\n\n\ndef test_it():\n    assert two() == 2\n"
BLIND = "def test_it():\n    pass\n"
BROKEN = "def test_it():\n    raise AssertionError\n"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone with a module, and three files of tests: one sees a fault in it, one does not, and one always fails."""
    files = {
        "py_backends/__init__.py": "",
        "py_backends/conformance/__init__.py": "",
        "py_backends/conformance/entry.py": "",  # an installed py-backends names it as a plug-in of pytest
        "tests/conftest.py": "def pytest_addoption(parser):\n    parser.addoption('--quick', action='store_true')\n",
        "py_backends/thing.py": "def two():\n    return 2\n",
        **{f"tests/test_{name}.py": text for name, text in {"seen": SEEN, "blind": BLIND, "broken": BROKEN}.items()},
        **dict.fromkeys(planted._FILES, ""),
    }
    for name in planted._FOLDERS:
        (tmp_path / name).mkdir()
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    faults = [Planted(test, "thing", "return 2", "return 3", test) for test in ("seen", "blind", "broken")]
    monkeypatch.setattr(planted, "CLONE", tmp_path)
    monkeypatch.setattr(planted, "faults", lambda: [*faults, Planted("lost", "thing", "return 4", "", "seen")])


@pytest.mark.parametrize(
    ("names", "code", "words"),
    [
        (["seen"], 0, "seen: caught by FAILED"),
        (["blind"], 1, "blind: not caught"),
        (["lost"], 1, "lost: thing has 0 times 'return 4'"),
        (["broken"], 1, "test_broken fails without a fault"),
        ([], 1, "1 of 4 planted faults were caught"),
    ],
)
@pytest.mark.usefixtures("clone")
def test_a_fault_is_caught_by_tests_that_pass_without_it(
    names: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert planted.main(names) == code
    assert words in capsys.readouterr().out


@pytest.mark.usefixtures("clone")
def test_an_unknown_fault_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        planted.main(["seen", "sein"])
    assert ended.value.code == 2
    assert "'seen'" in capsys.readouterr().err


def test_no_fault_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted, "faults", list)
    with pytest.raises(SystemExit) as ended:
        planted.main([])
    assert ended.value.code == 2


@pytest.mark.parametrize(("option", "code"), [("--help", 0), ("--hlep", 2)])
def test_an_option_is_no_folder(option: str, code: int) -> None:
    run = run_python("-m", "tests.net", option)
    assert run.returncode == code
    assert run.stdout.startswith("usage: ") == (code == 0)
    assert not Path(option).exists()


@pytest.mark.parametrize("fault", planted.faults(), ids=lambda fault: fault.name)
def test_what_a_fault_changes_is_there(fault: Planted) -> None:
    """Planting takes minutes and is not done for every change. A change that moves the code moves its fault."""
    module = planted.CLONE / "py_backends" / f"{fault.module}.py"
    assert module.read_text(encoding="utf-8").count(fault.old) == 1, "see planted.toml"
    assert (planted.CLONE / "tests" / f"test_{fault.test}.py").is_file()
