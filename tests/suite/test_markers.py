"""Markers by backend: registered and strict, enough tests under each, and skips that a machine can forbid."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from commands import CLONE, Finished, copy_clone, run_python

from py_backends import registry

pytestmark = pytest.mark.slow

FEWEST = 10
"""Tests that each backend has to have for a kernel of which it has a text."""

COUNTING = """import json, os
from collections import Counter
from pathlib import Path

def pytest_collection_finish(session):
    counts = Counter(mark for item in session.items for mark in {mark.name for mark in item.iter_markers()})
    Path(os.environ["MARKER_COUNTS"]).write_text(json.dumps(counts))
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How many tests of the whole suite carry each marker."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "counts_markers.py").write_text(COUNTING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")])))
        patch.setenv("MARKER_COUNTS", str(folder / "counts.json"))
        run = run_python("-m", "pytest", "--collect-only", "-q", "-p", "counts_markers", "-p", "no:cacheprovider")
    assert run.returncode == 0, run.stdout + run.stderr
    found: dict[str, int] = json.loads((folder / "counts.json").read_text())
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("backend", registry.backend_names())
def test_every_backend_has_tests(counts: dict[str, int], backend: str) -> None:
    kernels = [kernel for kernel in registry.kernel_names() if registry.kernel_texts(kernel, backend)]
    assert counts.get(backend, 0) >= FEWEST * len(kernels) > 0


BACKEND = '''"""A backend with what FOUND says."""

from py_backends import contract
from py_backends.contract import Target

FOUND = {found}


class Backend(contract.Backend):
    def targets(self):
        missing = Target.missing("lost", "its driver is on strike", "pip install patience")
        kinds = {{"device": Target("device"), "emulated": Target("emulated", emulated=True), "lost": missing}}
        return [kinds[kind] for kind in FOUND]

    def open(self, target, threads):
        raise AssertionError("no test here opens it")
'''
TESTS = """import pytest
from conftest import found, has_device, skip_or_fail, at_hand

TARGETS = [
    pytest.param(name, target, marks=getattr(pytest.mark, name), id=f"{name}-{target.name}")
    for name, target in found()
    if name != "rival"
]


@pytest.mark.absent
def test_of_absent():
    pass


@pytest.mark.parametrize(("name", "target"), TARGETS)
def test_of_a_target(name, target):
    assert target.available


@pytest.mark.rival
def test_of_a_device(pytestconfig):
    if not has_device("rival"):
        skip_or_fail(pytestconfig, "rival", "it is emulated only")


def test_of_nothing():
    chosen = [(name, target.name) for name, target in at_hand()]
    assert chosen == [("absent", "lost"), ("present", "device"), ("rival", "emulated")]
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with a backend that is not there, one with its device, and one that is emulated only."""
    clone = copy_clone(tmp_path_factory.mktemp("clone"), backends=[])
    for name, found in {"absent": ["lost"], "present": ["device", "lost"], "rival": ["emulated"]}.items():
        (clone / "py_backends" / "backend" / f"{name}.py").write_text(BACKEND.format(found=found))
    (clone / "tests").mkdir()
    for name in ("conftest.py", "commands.py", "stamps.py", "in_turn.py", "in_two.py"):
        shutil.copy(CLONE / "tests" / name, clone / "tests")
    shutil.copy(CLONE / "pyproject.toml", clone)
    (clone / "tests" / "test_some.py").write_text(TESTS)
    return clone


def run_pytest(clone: Path, *options: str) -> Finished:
    chosen = () if any(option.startswith(str(clone)) for option in options) else ("tests",)
    return run_python("-m", "pytest", "-v", "-p", "no:cacheprovider", *chosen, *options, cwd=clone)


def outcomes(run: Finished) -> dict[str, str]:
    lines = [line.split() for line in run.stdout.splitlines() if line.startswith("tests/test_some.py::")]
    return {words[0].partition("::")[2]: words[1] for words in lines}


AS_IT_IS = {
    "test_of_absent": "SKIPPED",
    "test_of_a_target[absent-lost]": "SKIPPED",
    "test_of_a_target[present-device]": "PASSED",
    "test_of_a_target[present-lost]": "SKIPPED",
    "test_of_a_device": "SKIPPED",
    "test_of_nothing": "PASSED",
}


def test_what_is_missing_is_skipped_with_the_reason(clone: Path) -> None:
    run = run_pytest(clone)
    assert (run.returncode, outcomes(run)) == (0, AS_IT_IS)
    assert "its driver is on strike (to change that: pip install patience)" in " ".join(run.stdout.split())


@pytest.mark.parametrize(
    ("required", "changed"),
    [
        (["absent"], {"test_of_absent": "ERROR", "test_of_a_target[absent-lost]": "ERROR"}),
        (["rival"], {"test_of_a_device": "FAILED"}),
        (["present"], {}),
        (
            ["present", "absent", "rival"],
            {"test_of_absent": "ERROR", "test_of_a_target[absent-lost]": "ERROR", "test_of_a_device": "FAILED"},
        ),
    ],
    ids=["absent", "rival", "present", "all"],
)
def test_what_is_required_fails_where_it_has_no_device(
    clone: Path, required: list[str], changed: dict[str, str]
) -> None:
    run = run_pytest(clone, *(option for name in required for option in ("--require-backend", name)))
    assert (run.returncode, outcomes(run)) == (int(bool(changed)), AS_IT_IS | changed)
    for name in {"absent"} & set(required):
        assert f"{name} is required but not there: its driver is on strike" in run.stdout


@pytest.mark.parametrize(("expression", "chosen"), [("absent", 2), ("rival", 1), ("not absent and not rival", 3)])
def test_markers_choose(clone: Path, expression: str, chosen: int) -> None:
    assert len(outcomes(run_pytest(clone, "-m", expression))) == chosen


def test_an_unknown_name_is_wrong_usage(clone: Path) -> None:
    run = run_pytest(clone, "--require-backend", "abzent")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--require-backend: unknown backend 'abzent': did you mean 'absent'?" in run.stdout + run.stderr


def test_an_unknown_marker_is_an_error(clone: Path) -> None:
    path = clone / "tests" / "test_misspelt.py"
    path.write_text("import pytest\n\n\n@pytest.mark.abzent\ndef test_it():\n    pass\n")
    try:
        run = run_pytest(clone, str(path))
    finally:
        path.unlink()
    assert run.returncode == pytest.ExitCode.INTERRUPTED
    assert "'abzent' not found in `markers` configuration option" in run.stdout
