"""A stamp is never taken where something changed that the answer depends on, or whether it is right."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import stamps
from stamps import Due, Stamps, StampsOfTests

from py_backends import registry
from py_backends.conformance.selection import Subject
from py_backends.contract import Target
from py_backends.system import cpu

TARGET = Target("there", device="a device", version="its driver 1.0")


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    """A source that includes another file, in a folder with a problem and trials."""
    text = registry.kernel_texts("vecadd", "openmp")["lecture"]
    variant = tmp_path / "kernel" / "lecture"
    variant.mkdir(parents=True)
    for name in ("problem.py", "trials.py"):
        (variant.parent / name).write_text(f"# {name}\n")
    (variant / "included.hpp").write_text('#include "twice.hpp"\n')
    (variant / "twice.hpp").write_text("// twice\n")
    (variant / "openmp.cpp").write_text('#include "included.hpp"\n')
    return Subject(replace(text, path=variant / "openmp.cpp"), TARGET)


@pytest.fixture
def kept(subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stamps:
    monkeypatch.setattr(stamps, "_COMPILED", tmp_path / "compiled")
    made = Stamps(tmp_path / "stamps")
    made.keep(subject, passed=True)
    forget()
    return made


def forget() -> None:
    """What is read once in a process, since nothing changes meanwhile, is read again."""
    for cached in (stamps._around, stamps._modules, stamps._digest_of_all, stamps._digest_of_file):
        cached.cache_clear()


def change(path: Path) -> None:
    path.write_text(f"{path.read_text()}# changed\n")
    forget()


def test_what_has_not_changed_is_right(kept: Stamps, subject: Subject) -> None:
    assert kept.due(subject) is Due.NOTHING
    assert kept.due(subject, "a part") is Due.LITTLE


@pytest.mark.parametrize("name", ["openmp.cpp", "included.hpp", "twice.hpp"])
def test_a_source_that_changed_is_tried_whole_until_it_passes(kept: Stamps, subject: Subject, name: str) -> None:
    change(subject.text.path.parent / name)
    assert kept.due(subject) is Due.ALL
    assert kept.due(subject) is Due.ALL, "looking is not passing"
    kept.keep(subject, passed=True)
    assert kept.due(subject) is Due.NOTHING


def test_a_part_of_a_python_source_is_of_the_source(tmp_path: Path) -> None:
    for name in ("triton.py", "triton_helper.py", "jax.py"):
        (tmp_path / name).write_text("\n")
    text = replace(registry.kernel_texts("vecadd", "triton")["lecture"], path=tmp_path / "triton.py")
    before = stamps.source_digest(Subject(text, TARGET))
    change(tmp_path / "jax.py")
    assert stamps.source_digest(Subject(text, TARGET)) == before
    change(tmp_path / "triton_helper.py")
    assert stamps.source_digest(Subject(text, TARGET)) != before


def test_what_a_source_imports_of_other_kernels_is_of_the_source(tmp_path: Path) -> None:
    """As attention's tuned form in Numba multiplies by matmul's."""
    for place, content in {
        "one/tuned/numba_cpu.py": "from ...other.tuned.numba_cpu import tile\n",
        "other/tuned/numba_cpu.py": "from . import numba_cpu_tiles\n",
        "other/tuned/numba_cpu_tiles.py": "\n",
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(content)
    text = replace(registry.kernel_texts("vecadd", "numba_cpu")["lecture"], path=tmp_path / "one/tuned/numba_cpu.py")
    for place in ("other/tuned/numba_cpu.py", "other/tuned/numba_cpu_tiles.py"):
        before = stamps.source_digest(Subject(text, TARGET))
        (tmp_path / place).write_text((tmp_path / place).read_text() + "# changed\n")
        forget()
        assert stamps.source_digest(Subject(text, TARGET)) != before


def test_a_source_that_is_not_compiled_yet_gets_no_stamp(kept: Stamps, subject: Subject) -> None:
    """What ran is the source before. It is tried whole once it is compiled."""
    stamps._COMPILED.mkdir()
    (stamps._COMPILED / "openmp.cpython.so").write_text("")
    os.utime(stamps._COMPILED / "openmp.cpython.so", (1, 1))
    change(subject.text.path)
    kept.keep(subject, passed=True)
    assert kept.due(subject) is Due.ALL
    os.utime(stamps._COMPILED / "openmp.cpython.so")
    kept.keep(subject, passed=True)
    assert kept.due(subject) is Due.NOTHING


def test_what_a_plug_in_brings_has_no_stamp(kept: Stamps, subject: Subject) -> None:
    brought = subject._replace(text=replace(subject.text, package="somebody.kernels"))
    kept.keep(brought, passed=True)
    assert kept.due(brought) is Due.LITTLE


@pytest.mark.parametrize("name", ["problem.py", "trials.py"])
def test_another_judge_is_no_stamp(kept: Stamps, subject: Subject, name: str) -> None:
    change(subject.text.path.parents[1] / name)
    assert kept.due(subject) is Due.LITTLE


@pytest.mark.parametrize(
    "other", [replace(TARGET, version="its driver 1.1"), replace(TARGET, device="another"), replace(TARGET, dtypes={})]
)
def test_another_device_or_driver_is_no_stamp(kept: Stamps, subject: Subject, other: Target) -> None:
    assert kept.due(subject._replace(target=other)) is Due.LITTLE


@pytest.mark.parametrize(
    ("where", "what", "value"),
    [
        (cpu, "identity", lambda: ("another CPU",)),
        (stamps, "_CPUS", 999),
        (stamps, "_said", lambda _: "another compiler"),
        (stamps, "_PATH", []),
        (sys, "version", "4.0"),
    ],
)
def test_another_machine_is_no_stamp(
    kept: Stamps,
    subject: Subject,
    monkeypatch: pytest.MonkeyPatch,
    where: object,
    what: str,
    value: Callable[..., object],
) -> None:
    monkeypatch.setattr(where, what, value)
    assert kept.due(subject) is Due.LITTLE
    forget()


@pytest.mark.parametrize(
    ("variable", "read"),
    [
        *((name, True) for name in ("CXXFLAGS", "CPATH", "POCL_MAX_WORK_GROUP_SIZE", "XLA_FLAGS", "OMP_NUM_THREADS")),
        *((name, True) for name in ("NUMBA_OPT", "LD_PRELOAD", "SYCL_CACHE_DIR", "MKL_CBWR", "XDG_CACHE_HOME")),
        *((name, True) for name in ("__GL_THREADED_OPTIMIZATIONS", "PATH", "A_LIBRARY_OF_TOMORROW")),
        *((name, False) for name in ("PWD", "TERM", "COLUMNS", "SSH_TTY", "PYTEST_XDIST_WORKER", "MAKELEVEL")),
    ],
)
def test_variables_that_something_may_read_are_looked_at(
    kept: Stamps, subject: Subject, monkeypatch: pytest.MonkeyPatch, variable: str, read: bool
) -> None:
    monkeypatch.setitem(stamps._ENVIRONMENT, variable, "changed")
    assert kept.due(subject) is (Due.LITTLE if read else Due.NOTHING)
    forget()


@pytest.mark.parametrize(
    ("name", "is_looked_at"),
    [
        ("py_backends/results/check.py", True),
        ("py_backends/workers/session.py", True),
        ("py_backends/conformance/running.py", True),
        ("py_backends/backend/_queues.py", True),
        ("py_backends/backend/_opencl_formats.cl", True),
        ("py_backends/backend/formats/numba_cpu.py", True),
        ("py_backends/harness/case.py", True),
        ("py_backends/backend/openmp.py", True),
        ("py_backends/backend/triton.py", False),
        ("py_backends/display/console.py", False),
        ("py_backends/_compiled/openmp.cpython.so", True),
        ("py_backends/_compiled/sycl_compiler.cpython.so", True),
        ("py_backends/_compiled/avx.cpython.so", False),
        ("tests/models/test_pairs.py", True),
        ("tests/launched.py", True),
    ],
)
def test_modules_that_compute_or_check_are_looked_at(tmp_path: Path, name: str, is_looked_at: bool) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    others = frozenset(registry.backend_names()) - {"openmp"}
    before = stamps._modules(tmp_path, others)
    change(file)
    assert (stamps._modules(tmp_path, others) != before) == is_looked_at


def test_what_borrows_kernels_depends_on_those_of_others(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[frozenset[str]] = []
    monkeypatch.setattr(stamps, "_modules", lambda _, others: asked.append(others) or "")
    stamps.around_digest(subject)
    stamps.around_digest(subject._replace(target=replace(TARGET, borrowed=True)))
    assert "avx" in asked[0]
    assert not asked[1]


@pytest.mark.parametrize(
    "damage", [lambda old: old[:-9], lambda old: old.replace("a", "b", 1), lambda _: "{}", lambda _: ""]
)
def test_a_damaged_stamp_is_none(kept: Stamps, subject: Subject, damage: Callable[[str], str]) -> None:
    (file,) = kept._folder.iterdir()
    file.write_text(damage(file.read_text()))
    assert kept.due(subject) is Due.LITTLE


def test_what_was_not_tried_has_none(kept: Stamps, subject: Subject) -> None:
    """But when it is changed, that is known."""
    kept.keep(subject, passed=False)
    assert kept.due(subject) is Due.LITTLE
    change(subject.text.path)
    assert kept.due(subject) is Due.ALL


@pytest.mark.parametrize(
    "name", ["py_backends/commands/a.py", "kernels/a/lecture/a.cu", "tests/a.toml", "pyproject.toml"]
)
def test_a_test_of_the_clone_depends_on_all_of_it(tmp_path: Path, name: str) -> None:
    file = tmp_path / "clone" / name
    file.parent.mkdir(parents=True)
    file.write_text("")
    kept = StampsOfTests(tmp_path / "stamps", tmp_path / "clone")
    assert not kept.passed("a test")
    kept.keep("a test")
    assert kept.passed("a test")
    assert not kept.passed("another test")
    change(file)
    assert not kept.passed("a test")


def test_a_test_that_names_its_files_depends_on_these(tmp_path: Path) -> None:
    """A folder stands for all that lies in it."""
    folder, file, other = tmp_path / "room", tmp_path / "test_it.py", tmp_path / "other.py"
    (folder / "further").mkdir(parents=True)
    within = folder / "further" / "a.py"
    for each in (within, file, other):
        each.write_text("")
    kept = StampsOfTests(tmp_path / "stamps", tmp_path)
    assert not kept.known("a test")
    kept.keep("a test", [folder, file])
    assert kept.known("a test")
    change(other)
    assert kept.passed("a test", [folder, file])
    for each in (within, file):
        kept.keep("a test", [folder, file])
        change(each)
        assert not kept.passed("a test", [folder, file])
