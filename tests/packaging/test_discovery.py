"""A path is a registration: a new backend or kernel is its own files, and no other file knows of it."""

from __future__ import annotations

import json
import shutil
import textwrap
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from commands import copy_clone, run_command, run_python
from plugin_packages import BACKEND, PROBLEM, kernel

from py_backends import registry

pytestmark = pytest.mark.slow

LOST = 'contract.Target.missing("slide-rule", "it is lost", "look for it")'
TWO_TARGETS = dedent(BACKEND).replace('version="1")]', f'version="1"), {LOST}]')
FUNCTION = """import sys
import numpy as np
import py_backends as pb
assert pb.__file__.startswith(sys.argv[1]), pb.__file__
a, b = np.float32([5, 7, 9]), np.float32([1, 2, 3])
print(sorted(set(dir(pb)) & {"vecadd", "vecsub", "matmul"}))
print(pb.vecsub(a, b, backend="fingers").tolist(), pb.vecadd(a, b, backend="fingers").tolist())
print(pb.vecadd.__name__, pb.vecsub.__name__)
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with the backend `fingers`, the kernel `vecsub`, and files that are neither."""
    clone = copy_clone(tmp_path_factory.mktemp("clone"), backends=["numpy", "python"])
    kernels = clone / "kernels"
    written = {
        clone / "py_backends" / "backend" / "fingers.py": TWO_TARGETS,
        kernels / "vecadd" / "tuned" / "fingers.py": kernel("vecadd", "+"),
        kernels / "vecsub" / "problem.py": dedent(PROBLEM).format(name="vecsub"),
        kernels / "vecsub" / "lecture" / "fingers.py": kernel("vecsub"),
        kernels / "vecsub" / "lecture" / "numpy.py": kernel("vecsub"),
        clone / "py_backends" / "backend" / "_toes.py": TWO_TARGETS,
        clone / "py_backends" / "backend" / "tools" / "__init__.py": "",
        kernels / "notes" / "lecture" / "fingers.py": "",
    }
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return clone


def test_doctor_finds_the_backend_and_only_that(clone: Path) -> None:
    path = clone / "doctor.json"
    run = run_command("doctor", "--json", path, cwd=clone)
    assert run.returncode == 0, run.stderr
    found = [
        (entry["backend"], entry["target"], entry["available"]) for entry in json.loads(path.read_text())["backends"]
    ]
    assert found == [
        ("fingers", "abacus", True), ("fingers", "slide-rule", False), ("numpy", "cpu", True), ("python", "cpu", True),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def rows(clone: Path) -> list[Any]:
    path = clone / "results.json"
    run = run_command(
        "compare", "--shape", "vecadd=509", "--kernel", "vecadd,vecsub", "--budget", "2", "--json", path, cwd=clone
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return list(json.loads(path.read_text())["rows"])


def test_compare_runs_them(rows: list[Any]) -> None:
    found = {(row["kernel"], row["backend"], row["target"], row["variant"]): row["status"] for row in rows}
    assert found == {
        ("vecadd", "fingers", "abacus", "tuned"): "ok",
        ("vecadd", "fingers", "slide-rule", "tuned"): "unavailable",
        ("vecadd", "numpy", "cpu", "lecture"): "ok",
        ("vecadd", "python", "cpu", "lecture"): "ok",
        ("vecsub", "fingers", "abacus", "lecture"): "ok",
        ("vecsub", "fingers", "slide-rule", "lecture"): "unavailable",
        ("vecsub", "numpy", "cpu", "lecture"): "ok",
        ("vecsub", "python", "cpu", "lecture"): "skipped",
    }
    reasons = {(row["kernel"], row["status"]): row["reason"] for row in rows if row["reason"]}
    assert {reasons.pop((kernel, "unavailable")) for kernel in ("vecadd", "vecsub")} == {"it is lost"}
    assert list(reasons) == [("vecsub", "skipped")]
    assert "vecsub" in reasons["vecsub", "skipped"]
    assert {row["versus"]["baseline"] for row in rows if row["status"] == "ok" and row["versus"]} == {"numpy"}


def test_a_variant_that_a_backend_lacks_is_skipped_with_the_reason(clone: Path) -> None:
    path = clone / "variants.json"
    options = ("--kernel", "vecadd", "--backend", "fingers,numpy", "--target", "abacus,cpu", "--shape", "vecadd=509")
    run = run_command("compare", *options, "--variant", "tuned", "--budget", "2", "--json", path, cwd=clone)
    assert run.returncode == 0, run.stdout + run.stderr
    fingers, numpy = json.loads(path.read_text())["rows"]
    assert (fingers["variant"], fingers["status"]) == ("tuned", "ok")
    assert (numpy["variant"], numpy["status"]) == ("tuned", "skipped")
    assert "tuned vecadd" in numpy["reason"]


def test_nothing_but_what_is_missing_is_no_success(clone: Path) -> None:
    run = run_command("compare", "--kernel", "vecadd", "--backend", "numpy", "--variant", "tuned", cwd=clone)
    assert run.returncode == 1
    assert "tuned vecadd" in run.stdout
    assert run.stdout.splitlines()[-1].startswith("No row")


def test_show_and_the_command_line_know_their_names(clone: Path) -> None:
    shown = run_command("show", "vecsub", "--backend", "fingers", cwd=clone)
    assert shown.stdout == (clone / "kernels" / "vecsub" / "lecture" / "fingers.py").read_text(encoding="utf-8")
    assert "'fingers'" in run_command("compare", "--backend", "finger", cwd=clone).stderr
    assert "'vecsub'" in run_command("show", "vecsup", cwd=clone).stderr


def test_they_are_python_functions(clone: Path) -> None:
    run = run_python("-c", FUNCTION, clone, cwd=clone)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "['matmul', 'vecadd', 'vecsub']",
        "[4.0, 5.0, 6.0] [6.0, 9.0, 12.0]",
        "vecadd vecsub",
    ]


def test_modules_of_the_house_are_no_backends() -> None:
    names = registry.backend_names()
    assert names == sorted(names)
    assert {"python", "numpy", "cpp", "openmp", "avx", "numba_cpu", "opencl", "sycl", "cuda", "numba_cuda"} <= set(
        names
    )
    assert not [name for name in names if name.startswith("_") or name in {"harness", "report", "kernels"}]


def test_a_folder_of_commands_is_a_command_with_a_view(clone: Path) -> None:
    files = {
        "__init__": '"""The command `greet`."""',
        "command": """
            HELP, DESCRIPTION, EXAMPLE = "says hello", "Says hello.", "greet"

            def add_options(parser):
                pass

            def run(options):
                print("hello from", options.line)
                return 0
        """,
        "table": """
            def print_report(report, out):
                out.print("hello from", report.created)
        """,
    }
    shown = """
        import py_backends as pb
        from py_backends.results.report import Report
        assert pb.read  # who has it sees reports as a notebook shows them
        print(Report("today", "1", {}, {"command": "py-backends greet"})._repr_html_())
    """
    folder = clone / "py_backends" / "commands" / "greet"
    folder.mkdir()
    try:
        for name, text in files.items():
            (folder / f"{name}.py").write_text(textwrap.dedent(text))
        assert run_command("greet", cwd=clone).stdout == "hello from py-backends greet\n"
        assert "says hello" in run_command("--help", cwd=clone).stdout
        assert "hello from today" in run_python("-c", textwrap.dedent(shown), cwd=clone).stdout
    finally:
        shutil.rmtree(folder)


def test_a_half_written_command_leaves_the_others_alone(clone: Path) -> None:
    folder = clone / "py_backends" / "commands" / "half"
    folder.mkdir()
    try:
        (folder / "__init__.py").write_text("")
        assert run_command("show", "vecadd", "--backend", "numpy", cwd=clone).returncode == 0
        refused = run_command("half", cwd=clone)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert "the command half cannot be used: No module named" in refused.stderr
    finally:
        shutil.rmtree(folder)


PROBLEM_WITH_ANOTHER_RATE = """
    from py_backends.contract import Problem

    class Half(Problem):
        name, signature, rule, rate, default_sizes = "half", "(n),(n)->(n)", "bitwise", "words", (9,)

        def reference(self, inputs):
            return inputs[0]

        def flops(self, sizes):
            return 1

    PROBLEM = Half()
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no attribute 'PROBLEM'"),
        (dedent(PROBLEM_WITH_ANOTHER_RATE), "its rate is 'words'"),
    ],
    ids=["nothing", "another rate"],
)
def test_a_kernel_of_the_project_that_is_wrong_is_one_line(clone: Path, text: str, said: str) -> None:
    """Its results were lost, after all others had been measured."""
    folder = clone / "kernels" / "half"
    folder.mkdir()
    try:
        (folder / "problem.py").write_text(text)
        refused = run_command("compare", "--kernel", "half", cwd=clone)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert "kernels/half/problem.py holds no problem" in refused.stderr
        assert said in refused.stderr
        assert run_command("show", "vecadd", "--backend", "numpy", cwd=clone).returncode == 0
    finally:
        shutil.rmtree(folder)
