"""A copy of the clone in which one backend's texts are changed, and built where they are compiled ahead of time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .texts import CLONE, User

_FOLDERS = ("py_backends", "kernels", "cpp_ext", "cmake")
_FILES = ("CMakeLists.txt", "pyproject.toml")
_LEFT_OUT = ("__pycache__",)
_READ_BY_TESTS = (".ci", ".github", "benchmarks", "docs", "examples", "results", "tests")


class Stillborn(Exception):
    """The changed text does not compile."""


class Scratch:
    """A folder with a copy of the clone for one backend. What lies there already is brought up to date."""

    def __init__(self, folder: Path, backend: str, instruction_set: str | None, *, with_tests: bool = False) -> None:
        self.folder, self.instruction_set = folder, instruction_set
        for name in (*_FOLDERS, *(_READ_BY_TESTS if with_tests else ())):
            for file in (CLONE / name).rglob("*"):
                if file.is_file() and not set(_LEFT_OUT) & set(file.relative_to(CLONE).parts):
                    self._bring(file)
        for file in (path for path in CLONE.iterdir() if with_tests and path.is_file()):
            self._bring(file)
        for name in _FILES:
            self._bring(CLONE / name)
        self._build = _Build(folder, backend, instruction_set) if instruction_set else None
        if self._build:
            self._build.whole()

    def _bring(self, file: Path) -> None:
        """Copy a file, where it is not the same already: what is not newer is not built again."""
        to = self.folder / file.relative_to(CLONE)
        if not to.exists() or to.read_bytes() != file.read_bytes():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, to)

    @contextmanager
    def changed(self, files: Mapping[str, bytes], compiled_for: User | None) -> Iterator[None]:
        """The copy with other contents of some files.

        compiled_for: the kernel and variant that they are part of, to be compiled; None for the host's part, which is
        compiled where it is in C++.

        Raises Stillborn where it does not compile.
        """
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
        try:
            if self._build and compiled_for:
                with self._build.again(compiled_for):
                    yield
            elif any(name.startswith("cpp_ext/") for name in files):
                with _Build(self.folder, "sycl_compiler", None).target_again():
                    yield
            else:
                yield
        finally:
            for name in files:
                shutil.copy(CLONE / name, self.folder / name)


class _Build:
    """The extension module of one backend, compiled for one instruction set, and not optimised, which takes long."""

    def __init__(self, source: Path, module: str, instruction_set: str | None) -> None:
        self._module, self._set = module, instruction_set
        self._folder = source / "build" / (instruction_set or module)
        self._compiled = source / "py_backends" / "_compiled"
        self._source = source

    def whole(self) -> None:
        """Configure and build."""
        others = {"amx", "avx512", "avx2", "sse", "baseline"} - {self._set}
        wanted = {"cpp": "CPP", "openmp": "OPENMP", "avx": "AVX", "stdpar": "STDPAR", "sycl_compiler": "SYCL"}
        _run(
            [
                *(_tool("cmake"), "-G", "Ninja", "-S", self._source, "-B", self._folder),
                *("-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG"),
                *(f"-DPython_EXECUTABLE={sys.executable}", f"-DCMAKE_MAKE_PROGRAM={_tool('ninja')}"),
                # What the compiler is known not to have is not compiled for.
                *(f"-DPY_BACKENDS_COMPILER_HAS_{name}=OFF" for name in sorted(others) if self._set),
                *(f"-DPY_BACKENDS_{name}={'ON' if each == self._module else 'OFF'}" for each, name in wanted.items()),
            ]
        )
        _run([_tool("ninja"), "-C", self._folder, "-j1", self._module])
        self._place()

    @contextmanager
    def again(self, user: User) -> Iterator[None]:
        """The module with one text compiled again, by CMake's own commands, and as it was before afterwards."""
        kernel, variant = user
        instance = f"{self._module}_{kernel}_{variant}_{self._set}.cpp.o"
        compiled = self._folder / "CMakeFiles" / f"{self._module}.dir" / self._module / instance
        kept = compiled.with_suffix(".kept")
        if not kept.exists():
            shutil.copy2(compiled, kept)
        try:
            self._command(str(compiled.relative_to(self._folder)))
            self._command(self._module)
            self._place()
            yield
        finally:
            shutil.copy2(kept, compiled)

    @contextmanager
    def target_again(self) -> Iterator[None]:
        """A module that has no instances, built with what was changed, and put back afterwards."""
        placed = next(self._compiled.glob(f"{self._module}.*.so"))
        before = placed.read_bytes()
        try:
            self.whole()
            yield
        except subprocess.CalledProcessError as error:
            raise Stillborn(error.stdout) from error
        finally:
            placed.write_bytes(before)

    def _command(self, target: str) -> None:
        """Run the last of the commands that make a target; Stillborn where it fails."""
        commands = _run([_tool("ninja"), "-C", self._folder, "-t", "commands", target]).splitlines()
        command = ["sh", "-c", commands[-1]]  # as ninja runs it
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Stillborn(done.stdout + done.stderr)

    def _place(self) -> None:
        for built in self._folder.glob(f"{self._module}.*.so"):
            shutil.copy2(built, self._compiled)


def _run(command: list[str | Path]) -> str:
    return subprocess.run(
        list(map(str, command)), check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ).stdout


def _tool(name: str) -> str:
    """A build tool: the environment's, else the system's."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else name
