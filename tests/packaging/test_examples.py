"""The examples of plug-ins are complete, short, and what the tutorials say; and the tutorials do what they say."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands import CLONE, LONGEST, copy_clone, run_python
from conftest import targets_of
from page_commands import all_commands, quick
from plugin_packages import BACKENDS, KERNELS, install

BACKEND, KERNEL, STEPS = (CLONE / "examples" / name for name in ("backend_einsum", "kernel_axpy", "kernel_steps"))
PAGES = {
    BACKEND: CLONE / "docs" / "write-a-backend.md",
    KERNEL: CLONE / "docs" / "write-a-kernel.md",
    STEPS: CLONE / "docs" / "write-a-kernel-of-steps.md",
}
MOST_LINES = {BACKEND: 60, KERNEL: 60, STEPS: 140}  # two kernels, one of them on ranks too
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet")


OF_EXAMPLES = [command for command in all_commands() if re.search("einsum|axpy|smooth|kernel_steps", command)]


@dataclass(frozen=True)
class Block:
    """A block of code in a page: in which language, of which file, in the place of which class of it."""

    language: str
    path: str | None
    instead_of: str | None
    text: str


def blocks(page: Path) -> list[Block]:
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [Block(language, path or None, name or None, text) for language, path, name, text in found]


def files(example: Path) -> dict[str, str]:
    """The files of an example that make its package, by their places."""
    found = [path for path in example.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {
        str(path.relative_to(example)): path.read_text(encoding="utf-8") for path in found if path.name != "README.md"
    }


@pytest.mark.documents
@pytest.mark.parametrize("example", PAGES, ids=lambda path: path.name)
class TestPages:
    def test_an_example_is_short(self, example: Path) -> None:
        assert sum(text.count("\n") for text in files(example).values()) < MOST_LINES[example]

    def test_a_page_has_every_file_as_it_is(self, example: Path) -> None:
        shown = {block.path: block.text for block in blocks(PAGES[example]) if block.path and not block.instead_of}
        assert shown == files(example)

    def test_a_readme_names_its_page(self, example: Path) -> None:
        assert f"](../../docs/{PAGES[example].name})" in (example / "README.md").read_text(encoding="utf-8")


def einsum(folder: Path, imports: str, *instead: Block) -> None:
    """Install the example of a backend, with classes of its page in the place of its own."""
    texts = {path: text for path, text in files(BACKEND).items() if path != "pyproject.toml"}
    name = "py_backends_einsum/__init__.py"
    for block in instead:
        assert block.path == name
        parts = re.split(r"^(?=class )", texts[name], flags=re.MULTILINE)
        replaced = [block.text if part.startswith(f"class {block.instead_of}(") else part for part in parts]
        assert replaced != parts
        texts[name] = "\n\n".join(part.rstrip() + "\n" for part in replaced)
    texts[name] = texts[name].replace("import numpy as np\n", f"{imports}\nimport numpy as np\n")
    install(folder, BACKENDS, {"einsum": "py_backends_einsum"}, texts, "py-backends-einsum")


@pytest.mark.slow
class TestOtherBackends:
    """What the page has in the place of classes of the example."""

    @pytest.fixture(scope="class")
    @classmethod
    def clone(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return copy_clone(tmp_path_factory.mktemp("clone"), backends=["numpy"])

    @staticmethod
    def instead_of(name: str, containing: str) -> Block:
        found = [block for block in blocks(PAGES[BACKEND]) if block.instead_of == name and containing in block.text]
        assert len(found) == 1
        return found[0]

    @staticmethod
    def rows(clone: Path, installed: Path) -> list[Any]:
        path = installed / "results.json"
        options = "--kernel", "matmul", "--backend", "einsum", "--shape", "matmul=9x8x7", "--budget", "1"
        where = {"cwd": installed, "path": [clone, installed]}
        run = run_python("-m", "py_backends", "compare", *options, "--json", path, **where)
        assert path.exists(), run.stdout + run.stderr
        return list(json.loads(path.read_text())["rows"])

    def test_a_device_with_memory_of_its_own(self, clone: Path, tmp_path: Path) -> None:
        imports = "import threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
        einsum(tmp_path, imports, self.instead_of("Device", "ThreadPoolExecutor"))
        (row,) = self.rows(clone, tmp_path)
        assert (row["status"], row["reason"]) == ("ok", None)
        assert all(row["seconds"][phase] > 0 for phase in ("upload", "download"))

    def test_a_library_that_is_missing(self, clone: Path, tmp_path: Path) -> None:
        einsum(tmp_path, "", self.instead_of("Backend", "import abacus"))
        (row,) = self.rows(clone, tmp_path)
        assert (row["target"], row["status"]) == ("abacus", "unavailable")
        assert "driver" in row["reason"]
        assert row["fix"] == "pip install abacus"

    def test_a_library_that_is_there(self, clone: Path, tmp_path: Path) -> None:
        einsum(tmp_path, "", self.instead_of("Backend", "import abacus"))
        bead = "__version__ = '7'\nclass Bead: name, model = 'wood', 'long'\ndef devices(): return [Bead]\n"
        (tmp_path / "abacus.py").write_text(bead)
        code = "from py_backends.functions.targets import targets_of as d; print([t.device for t in d('einsum')])"
        assert run_python("-c", code, cwd=tmp_path, path=[clone, tmp_path]).stdout.strip() == "['long']"

    def test_an_emulated_device(self, clone: Path, tmp_path: Path) -> None:
        einsum(tmp_path, "import os", self.instead_of("Backend", "ABACUS_SIMULATE"))
        (row,) = self.rows(clone, tmp_path)
        assert (row["target"], row["status"], row["fix"]) == ("emulated", "emulated", "buy one")
        assert row["check"]["passed"]


@pytest.mark.slow
@pytest.mark.mpi
def test_the_source_for_ranks_is_right(tmp_path: Path) -> None:
    """The reference has it beside the example."""
    (source,) = (block.text for block in blocks(CLONE / "docs" / "reference.md") if "def blocks(" in block.text)
    texts = files(KERNEL) | {"axpy/lecture/mpi.py": source}
    del texts["pyproject.toml"]
    install(tmp_path, KERNELS, {"axpy": "axpy"}, texts, "py-backends-axpy")
    path, clone = tmp_path / "results.json", copy_clone(tmp_path / "clone", backends=["mpi", "numpy"])
    shapes = [word for n in (1001, 1, 0) for word in ("--shape", f"axpy={n}")]
    options = "--kernel", "axpy", "--backend", "mpi", "--target", "2x1", *shapes, "--budget", "3"
    where = {"cwd": tmp_path, "path": [clone, tmp_path]}
    run = run_python("-m", "py_backends", "compare", *options, "--json", path, **where)
    assert path.exists(), run.stdout + run.stderr
    rows = json.loads(path.read_text())["rows"]
    assert [(row["status"], row["reason"]) for row in rows] == [("ok", None)] * 3


@pytest.mark.slow
class TestInstalled:
    """Both examples, built and installed as a reader does it, beside a wheel of py-backends that was built here.

    It goes to a folder that comes first on Python's path, and what else is needed comes from the environment: a fresh
    one would have to fetch it. The wheel has no extension modules, which take a minute to compile and are no part of
    this.
    """

    @pytest.fixture(scope="class")
    @classmethod
    def installed(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        for module, package in {"scikit_build_core": "scikit-build-core", "flit_core": "flit-core"}.items():
            pytest.importorskip(module, reason=f"what builds packages is missing: pip install {package}")
        folder = tmp_path_factory.mktemp("installed")
        pip_install(folder, str(CLONE), "--config-settings=cmake.define.PY_BACKENDS_COMPILE=OFF")
        for page in PAGES.values():
            for command in commands(page):
                if command[:2] == ["pip", "install"]:
                    pip_install(folder, *command[2:])
        return folder

    def test_it_is_the_wheel_that_runs(self, installed: Path) -> None:
        run = run_python("-c", "import py_backends; print(py_backends.__path__)", cwd=installed, path=[installed])
        assert run.stdout.strip() == str([str(installed / "py_backends")]), run.stderr

    @pytest.fixture(scope="class")
    @classmethod
    def written(cls, installed: Path, thorough: bool) -> dict[str, Any]:
        """What the commands of all pages that take the examples write as JSON, each of them run once.

        A quick run has two backends, so one that names `opencl` runs as it is.
        """
        told = [each for each in OF_EXAMPLES if re.match("py-backends (?!show)", each)]
        quicker = [each if "opencl" in each else quick(each) for each in told]
        ours = dict.fromkeys(["py-backends doctor", *told] if thorough else quicker)
        return {command: run_for_json(installed, *from_clone(shlex.split(command)[1:])) for command in ours}

    def test_every_command_is_run_here(self, written: dict[str, Any]) -> None:
        programs = {command.split()[0] for command in OF_EXAMPLES}
        assert programs == {"pip", "py-backends", "pytest"}
        assert {command.split()[1] for command in written} - {"doctor"} == {"compare"}

    def test_its_sources_are_shown(self, installed: Path) -> None:
        run = run_python("-m", "py_backends", "show", "axpy", cwd=installed, path=[installed])
        assert run.returncode == 0, run.stderr
        assert re.findall(r"^==> (\w+)  ", run.stdout, re.MULTILINE) == ["numpy", "opencl", "openmp"]
        for source in (KERNEL / "axpy" / "lecture").iterdir():
            assert source.is_dir() or source.read_text(encoding="utf-8").rstrip() in run.stdout

    @pytest.mark.nightly
    def test_doctor_lists_both(self, written: dict[str, Any]) -> None:
        found = written["py-backends doctor"]
        entry = next(entry for entry in found["backends"] if entry["backend"] == "einsum")
        assert (entry["available"], entry["package"]) == (True, "py-backends-einsum 0.1.0")
        kernels = {kernel["kernel"]: kernel for kernel in found["plugin_kernels"]}
        assert list(kernels) == ["axpy", "smooth", "total"]
        assert kernels["axpy"]["package"] == "py-backends-axpy 0.1.0"
        assert (kernels["axpy"]["backends"], kernels["axpy"]["reason"]) == (["numpy", "opencl", "openmp"], None)

    @pytest.mark.parametrize(
        "name", [("axpy", "numpy"), ("matmul", "einsum"), ("smooth", "numpy"), ("total", "numpy")], ids="-".join
    )
    def test_compare_finds_them_right_and_times_them(self, written: dict[str, Any], name: tuple[str, str]) -> None:
        rows = [row for report in written.values() for row in report.get("rows", ())]
        found = [row for row in rows if (row["kernel"], row["backend"]) == name]
        assert found
        for row in found:
            assert (row["status"], row["reason"]) == ("ok", None)
            assert 0 <= row["check"]["error_over_bound"] <= 1
            assert row["seconds"]["kernel"]["median"] > 0

    @pytest.mark.opencl
    def test_a_kernel_that_is_compiled_at_run_time(self, written: dict[str, Any]) -> None:
        rows = [row for report in written.values() for row in report.get("rows", ())]
        there = {target.name for target in targets_of("opencl") if target.available}
        found = {
            (row["dtype"], row["target"]): row["status"]
            for row in rows
            if (row["kernel"], row["backend"]) == ("axpy", "opencl")
        }
        assert {at: status for at, status in found.items() if at[1] in there} == {
            (dtype, target): "ok" for dtype in ("float32", "float64") for target in there
        }

    @pytest.mark.parametrize("page", PAGES.values(), ids=lambda path: path.stem)
    def test_the_suite_tries_them(self, installed: Path, page: Path) -> None:
        """As the page says, but for one kind of cases: all of them take half a minute."""
        (command,) = (from_clone(command) for command in commands(page) if command[0] == "pytest")
        told = installed / "conformance.json"
        options = "--kind", "shapes", "--conformance-json", told, "-p", "no:cacheprovider"
        run = run_python("-m", *command, *options, cwd=installed, path=[installed])
        assert run.returncode == 0, run.stdout + run.stderr
        kinds = json.loads(told.read_text())
        asked = command[command.index("--kernel") + 1].split(",") if "--kernel" in command else ["matmul"]
        assert {kind["kernel"] for kind in kinds} == {Path(each).name for each in asked}
        assert {kind["dtype"] for kind in kinds} == {"float32", "float64"}

    def test_the_function_of_the_page(self, installed: Path) -> None:
        (code,) = (block.text for block in blocks(PAGES[KERNEL]) if "import py_backends as pb" in block.text)
        run = run_python("-c", code, cwd=installed, path=[installed])
        assert run.returncode == 0, run.stderr
        assert run.stdout.split() == code.rpartition("# ")[2].split()


def from_clone(command: list[str]) -> list[str]:
    """A command of a page, which is run in the clone's root, for another folder."""
    return [re.sub(r"^examples/", f"{CLONE}/examples/", word) for word in command]


def commands(page: Path) -> Iterator[list[str]]:
    """The commands of a page, in their order."""
    for block in blocks(page):
        if block.language == "sh":
            yield from map(shlex.split, block.text.splitlines())


def run_for_json(installed: Path, *command: str) -> Any:
    """Run a command that writes JSON where the examples are installed; what it wrote."""
    path = installed / "written.json"
    run = run_python("-m", "py_backends", *command, "--json", path, cwd=installed, path=[installed], longest=300)
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(path.read_text())


def pip_install(folder: Path, *what: str) -> None:
    command = [sys.executable, "-m", "pip", "install", *_OFFLINE, "--target", str(folder), *what]
    run = subprocess.run(command, cwd=CLONE, capture_output=True, text=True, timeout=LONGEST, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
