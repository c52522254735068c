"""C++ that was not compiled ahead: what a folder brings, and the project's own after a change."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import psutil
import pytest
from commands import CLONE
from compilers import clang, gcc

from py_backends import registry
from py_backends.backend import _cpp_at_run_time, _cpu_kernels
from py_backends.errors import BackendUnavailable
from py_backends.kernel_text import KernelText
from py_backends.system import temporary

pytestmark = pytest.mark.stamped

SCALE = """// vecadd, by a loop of anybody's.
#include <cstdint>

#include "formats.hpp"

template <typename T>
void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
{pragma}
  for (std::int64_t i = 0; i < n; ++i) c[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}
"""
PRAGMAS = {"cpp": "", "openmp": "#pragma omp parallel for", "avx": "", "stdpar": ""}
TARGETS = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in PRAGMAS]


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where compiled kernels are kept, empty at first."""
    monkeypatch.setenv("PY_BACKENDS_KERNEL_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


def source(folder: Path, backend: str, text: str) -> KernelText:
    path = folder / "mine" / f"{backend}.cpp"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return KernelText(registry.problem("vecadd"), "mine", backend, path, "somewhere.else")


def device(backend: str) -> Any:
    opened = registry.backend(backend)
    (target, *_) = (each.name for each in opened.targets() if each.available and each.name != "amx")
    return opened.open(target, 2)


def added(backend: str, text: KernelText, dtype: str = "float32") -> Any:
    launch = device(backend).prepare(text, np.dtype(dtype))
    a, b, c = np.arange(1001).astype(dtype), np.ones(1001, dtype), np.zeros(1001, dtype)
    launch([a, b, c], [1001])
    return c


@pytest.mark.parametrize("backend", TARGETS)
def test_a_source_of_anybodys_is_compiled_and_right(backend: str, tmp_path: Path, kept: Path) -> None:
    text = source(tmp_path, backend, SCALE.replace("{pragma}", PRAGMAS[backend]))
    for dtype in "float32", "float64":
        np.testing.assert_array_equal(added(backend, text, dtype), np.arange(1, 1002).astype(dtype))
    assert len(list(kept.iterdir())) == 2, "one for each number format"


@pytest.mark.cpp
def test_arrays_that_a_kernel_cannot_take_are_refused_and_not_read(tmp_path: Path) -> None:
    launch = device("cpp").prepare(source(tmp_path, "cpp", SCALE.replace("{pragma}", "")), np.dtype("float32"))
    a, c = np.ones(8, np.float32), np.zeros(8, np.float32)
    with pytest.raises(TypeError, match="float32, not float64"):
        launch([a, a.astype("f8"), c], [8])
    with pytest.raises(ValueError, match="takes 3 arrays, not 2"):
        launch([a, c], [8])
    c.flags.writeable = False
    with pytest.raises(ValueError, match="the output is read-only"):
        launch([a, a, c], [8])
    assert not c.any()


@pytest.mark.cpp
@pytest.mark.parametrize(
    ("thrown", "error", "words"),
    [
        ("c[0] = std::vector<T>(1).at(n)", RuntimeError, r"mine.* throws an exception: .*1001"),
        ("std::vector<char>(std::size_t(1) << 62)", MemoryError, "no memory for the workspace of"),
    ],
)
def test_an_exception_of_a_kernel_is_one_of_python(
    thrown: str, error: type[Exception], words: str, tmp_path: Path
) -> None:
    """It ended the process without a word, since the interpreter lock was not taken back.

    A kernel cannot throw by itself. The standard library can.
    """
    body = SCALE.replace("#include <cstdint>", "#include <cstdint>\n#include <vector>")
    with pytest.raises(error, match=words):
        added("cpp", source(tmp_path, "cpp", body.replace("{pragma}", f"  {thrown};")))


@pytest.mark.cpp
def test_it_is_kept_until_something_changes(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = "template <typename T> T one(T x) {{ return x + {number}; }}\n"
    body = SCALE.replace('#include "formats.hpp"', '#include "formats.hpp"\n#include "own.hpp"').replace("{pragma}", "")
    text = source(tmp_path, "cpp", body.replace("widen(b[i])", "one(0)"))
    for number, files in (1, 1), (1, 1), (3, 2):
        (text.path.parent / "own.hpp").write_text(header.format(number=number))
        assert added("cpp", text)[0] == number
        assert len(list(kept.iterdir())) == files
    monkeypatch.setattr(_cpp_at_run_time, "_compile", lambda *_: pytest.fail("it is kept"))
    assert added("cpp", text)[0] == 3


@pytest.mark.parametrize("backend", TARGETS)
def test_a_copy_of_the_projects_source_is_compiled_anywhere(backend: str, tmp_path: Path) -> None:
    """Sources are best begun as copies. What they include lies two folders above the project's."""
    own = registry.kernel_texts("vecadd", backend)["lecture"].text
    assert '#include "../../' in own
    np.testing.assert_array_equal(added(backend, source(tmp_path, backend, own)), np.arange(1, 1002).astype("f4"))


@pytest.mark.cpp
def test_copies_of_the_projects_headers_may_lie_beside_a_source(tmp_path: Path) -> None:
    """As CUDA needs one of formats.hpp. What each library is made of includes the project's own as well."""
    text = source(tmp_path, "cpp", SCALE.replace("{pragma}", ""))
    for header in registry.kernels_folder().glob("*.hpp"):
        (text.path.parent / header.name).write_text(header.read_text())
    assert added("cpp", text)[1000] == 1001


@pytest.mark.cpp
def test_headers_that_only_the_compiler_finds_count(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an option of `CXX`, in a folder whose name make would take for two. Else an edited header changed nothing."""
    folder = tmp_path / "my #1 $headers"
    folder.mkdir()
    monkeypatch.setenv("CXX", f"c++ '-I{folder}'")
    body = SCALE.replace('#include "formats.hpp"', '#include <far.hpp>\n#include "formats.hpp"').replace("{pragma}", "")
    text = source(tmp_path, "cpp", body.replace("widen(b[i])", "far()"))
    for number in 1, 3:
        (folder / "far.hpp").write_text(f"inline float far() {{ return {number}; }}\n")
        assert added("cpp", text)[0] == number
    monkeypatch.setattr(_cpp_at_run_time, "_compile", lambda *_: pytest.fail("it is kept"))
    assert added("cpp", text)[0] == 3
    assert len(list(kept.iterdir())) == 1


@pytest.mark.cpp
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("void vecadd(nonsense);", "nonsense"),
        ('#include "nowhere.hpp"\n', "nowhere.hpp"),
        ("template <typename T> void other(const T*, T*) {}\n", "vecadd"),
    ],
    ids=["an error", "an include that is not there", "another function"],
)
def test_what_the_compiler_says_is_told_in_a_line(text: str, words: str, tmp_path: Path, kept: Path) -> None:
    with pytest.raises(RuntimeError, match=r"does not compile it: .*error") as raised:
        added("cpp", source(tmp_path, "cpp", text))
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not list(kept.iterdir())


@pytest.mark.cpp
def test_without_a_compiler_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = source(tmp_path, "cpp", SCALE.replace("{pragma}", ""))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(BackendUnavailable, match="there is no compiler") as raised:
        added("cpp", text)
    assert "g++" in (raised.value.fix or "")


@pytest.mark.cpp
def test_another_compiler_is_taken_by_its_name(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its work is kept apart."""
    text = source(tmp_path, "cpp", SCALE.replace("{pragma}", ""))
    added("cpp", text)
    other = tmp_path / "other"
    other.write_text(f'#!/bin/sh\ntouch {tmp_path}/called\nexec {shutil.which("c++")} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("CXX", f"{other} -O1")
    added("cpp", text)
    assert (tmp_path / "called").exists()
    assert len(list(kept.iterdir())) == 2


@pytest.mark.cpp
def test_a_compiler_that_lacks_a_flag_of_the_builds_goes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As clang refuses -fno-gnu-unique, after a build by g++."""
    other, called = tmp_path / "other", tmp_path / "called"
    lacks = 'case " $* " in *" -fno-gnu-unique "*) echo "error: unknown argument" >&2; exit 1;; esac'
    other.write_text(f'#!/bin/sh\n{lacks}\ntouch {called}\nexec {shutil.which("c++")} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("CXX", str(other))
    assert added("cpp", source(tmp_path, "cpp", SCALE.replace("{pragma}", "")))[1000] == 1001
    assert called.exists()


@pytest.mark.cpp
def test_a_compiler_may_read_files_that_are_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in a container does."""
    other = tmp_path / "other"
    adds = 'for each; do case "$each" in *.d) echo " /nowhere/cstdint" >>"$each";; esac; done'
    other.write_text(f'#!/bin/sh\n{shutil.which("c++")} "$@" && {adds}\n')
    other.chmod(0o755)
    monkeypatch.setenv("CXX", str(other))
    text = source(tmp_path, "cpp", SCALE.replace("{pragma}", ""))
    assert added("cpp", text)[1000] == 1001
    monkeypatch.setattr(_cpp_at_run_time, "_compile", lambda *_: pytest.fail("it is kept"))
    assert added("cpp", text)[1000] == 1001


@pytest.mark.slow
@pytest.mark.parametrize("backend", TARGETS)
@pytest.mark.parametrize("other", [gcc, clang])
def test_either_compiler_serves_whichever_built_the_modules(
    other: Callable[[], str | None], backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = other() or pytest.skip(f"no {other.__name__} (to change that: apt-get install g++ clang libomp-dev)")
    monkeypatch.setenv("CXX", compiler)
    text = source(tmp_path, backend, SCALE.replace("{pragma}", PRAGMAS[backend]))
    np.testing.assert_array_equal(added(backend, text), np.arange(1, 1002).astype("f4"))


@pytest.mark.cpp
def test_a_compiler_that_never_ends_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler's command starts the compiler proper, which computed on for nobody."""
    endless, started = tmp_path / "endless", tmp_path / "started"
    endless.write_text(f"#!/bin/sh\nsleep 600 &\necho $! >{started}\nwait\n")
    endless.chmod(0o755)
    monkeypatch.setenv("CXX", str(endless))
    monkeypatch.setattr(_cpp_at_run_time, "_LONGEST", 2)
    with pytest.raises(RuntimeError, match=r"endless has not compiled it within 2 s$"):
        added("cpp", source(tmp_path, "cpp", SCALE.replace("{pragma}", "")))
    while is_alive(int(started.read_text())):  # a signal takes a moment
        sleep(0.05)


def is_alive(process: int) -> bool:
    return psutil.pid_exists(process) and psutil.Process(process).status() != psutil.STATUS_ZOMBIE


@pytest.mark.cpp
def test_without_a_temporary_folder_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary, "folder", lambda: None)
    with pytest.raises(BackendUnavailable, match="has no place for a temporary folder") as raised:
        added("cpp", source(tmp_path, "cpp", SCALE.replace("{pragma}", "")))
    assert "TMPDIR" in (raised.value.fix or "")


@pytest.fixture
def changed(tmp_path: Path) -> KernelText:
    """A copy of the project's own source, of which something is another than what was compiled."""
    own = registry.kernel_texts("heat", "openmp")["lecture"]
    shutil.copytree(CLONE / "kernels", tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "kernels" / own.path.relative_to(registry.kernels_folder())
    path.write_text(path.read_text() + "// changed\n")
    return KernelText(own.problem, own.variant, own.backend, path)


@pytest.mark.openmp
def test_a_source_that_has_changed_is_compiled_as_it_is(changed: KernelText) -> None:
    u, c = np.random.default_rng(1).standard_normal(17 * 19).astype("f4"), np.zeros(17 * 19, "f4")
    device("openmp").prepare(changed, np.dtype("f4"))([u, c], [17, 19, 3])
    (right,) = (changed.problem.reference([u.reshape(17, 19)], 3).value,)
    np.testing.assert_allclose(c.reshape(17, 19), right, atol=1e-5)


@pytest.mark.slow
@pytest.mark.cpp
def test_two_processes_and_one_that_is_killed_leave_what_is_right(tmp_path: Path, kept: Path) -> None:
    """Nor does the killed one leave anything in the temporary folder, after the others."""
    source(tmp_path, "cpp", SCALE.replace("{pragma}", ""))
    code = (
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from py_backends import registry\n"
        "from py_backends.kernel_text import KernelText\n"
        "text = KernelText(registry.problem('vecadd'), 'mine', 'cpp', Path(sys.argv[1]), 'somewhere.else')\n"
        "launch = registry.backend('cpp').open('cpu', 1).prepare(text, np.dtype('f4'))\n"
        "c = np.zeros(3, 'f4'); launch([c + 1, c + 2, c], [3]); print(c)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "mine" / "cpp.cpp")]
    slow, begun = tmp_path / "slow", tmp_path / "begun"
    slow.write_text(f"#!/bin/sh\ntouch {begun}\nsleep 60\n")
    slow.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    alone = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    killed = subprocess.Popen(command, cwd=CLONE, start_new_session=True, env={**alone, "CXX": str(slow)})
    while not begun.exists():
        assert killed.poll() is None
        sleep(0.05)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    several = [subprocess.Popen(command, cwd=CLONE, env=alone, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [each.communicate()[0] for each in several] == ["[3. 3. 3.]\n"] * 2
    assert len([file for file in kept.iterdir() if not file.name.startswith("unfinished")]) == 1
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.nightly
@pytest.mark.parametrize("backend", TARGETS)
def test_all_sources_are_right_when_compiled_so(backend: str) -> None:
    """At a small shape, in float32. The suite tries the ones that were compiled ahead."""
    opened = device(backend)
    assert isinstance(opened, _cpu_kernels.Device)
    for kernel in registry.kernel_names():
        for text in registry.kernel_texts(kernel, backend).values():
            if "float32" not in registry.dtypes(text):
                continue
            problem = text.problem
            sizes = problem.equal_sizes(33)
            inputs = list(problem.draw(sizes, np.dtype("f4"), np.random.default_rng(1)))
            inputs = [each.astype("f4") for each in inputs]
            output = np.zeros(int(np.prod(problem.shapes(sizes)[-1])), "f4")
            run = _cpp_at_run_time.prepared(text, backend, opened._instruction_set, "float32")
            run([*(each.reshape(-1) for each in inputs), output], sizes, 2)
            reference = problem.reference(inputs, *problem.numbers.values())
            np.testing.assert_allclose(output.reshape(problem.shapes(sizes)[-1]), reference.value, rtol=1e-3, atol=1e-3)
