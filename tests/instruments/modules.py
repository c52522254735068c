"""The extension modules under a sanitizer, through the tests: `python -m tests.instruments.modules asan`, or `tsan`.

Builds them apart (the presets of CMakePresets.json), plants faults in scratch copies, each of which has to be reported,
and then runs the tests, with the sanitizer's library loaded into every Python. Whatever is reported fails the run.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).parents[1]))  # where pytest looks for these too
sys.path.insert(0, str(Path(__file__).parent))
from compilers import clang, family, gcc
from faults import table
from faults.table import Change
from sanitizers import REPORTED, SANITIZERS, Sanitizer

CLONE = Path(__file__).parents[2]
QUICK_TESTS = ("tests/instruments/test_exact_memory.py", "tests/functions/test_shortcut.py")
TESTS = (*QUICK_TESTS, "tests/functions/test_functions.py", "--pyargs", "py_backends.conformance")
"""What runs on the instrumented modules, and as much of it as shows within minutes."""
_NOT_FOR = {"asan": ("-k", "not int8-saturation"), "tsan": ("-k", "not beyond-the-caches")}
"""Sums that wrap around on purpose; and gigabytes, of which the other sanitizer keeps four times as much."""
BACKENDS = {"asan": ("avx", "cpp", "openmp", "stdpar"), "tsan": ("avx", "cpp", "openmp")}
"""The backends that are modules of ours. Of oneTBB, whose threads stdpar takes, ThreadSanitizer does not see what waits
for what: the library of its wheel is not instrumented."""

_CALL = """
import sys
import numpy as np
import py_backends as pb
from py_backends import registry
from py_backends.harness.case import Case
kernel, backend, variant, target, *sizes = sys.argv[1:]
problem, sizes = registry.problem(kernel), tuple(map(int, sizes))
inputs = Case(problem, sizes, np.dtype("float32"), 1).inputs
inputs = [array.reshape(shape) for array, shape in zip(inputs, problem.shapes(sizes))]
getattr(pb, kernel)(*inputs, backend=backend, variant=variant, target=target or None, threads=2)
"""


@dataclass(frozen=True)
class Build:
    """Modules of a preset, and how Python is started on them."""

    sanitizer: Sanitizer
    compiler: str
    modules: Path

    def run(self, command: Sequence[str | Path], cwd: Path, reports: Path) -> int:
        """Run a command of Python with the sanitizer in it; its exit code. Reports become files in `reports`."""
        shutil.rmtree(reports, ignore_errors=True)
        reports.mkdir(parents=True)
        done = subprocess.run(
            [sys.executable, *map(str, command)], cwd=cwd, env=self._environment(reports), check=False
        )
        return done.returncode

    def _environment(self, reports: Path) -> Mapping[str, str]:
        told = self.sanitizer.environment(reports / "report")
        if self.sanitizer.name == "asan" and family(self.compiler) == "g++":
            # Frames that g++ keeps after a return may begin where no vector of 64 bytes can lie.
            told = {**told, "ASAN_OPTIONS": f"{told['ASAN_OPTIONS']}:detect_stack_use_after_return=0"}
        return {
            **os.environ,
            **told,
            "LD_PRELOAD": str(self.sanitizer.runtime(self.compiler)),
            "PY_BACKENDS_COMPILED": str(self.modules),
            "PYTHONMALLOC": "malloc",  # else small arrays lie in Python's own pools, where no end is seen
            # Where reports find the names of functions.
            "PATH": f"{Path(self.compiler).resolve().parent}{os.pathsep}{os.environ['PATH']}",
            **({"OMP_TOOL_LIBRARIES": str(archer(self.compiler))} if self.sanitizer.name == "tsan" else {}),
        }


def main() -> int:
    """Build, plant, test; 1 where anything is reported that should not be, or not reported that should."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("preset", choices=SANITIZERS)
    parser.add_argument("--quick", action="store_true", help="this machine's best instruction set only, and few tests")
    parser.add_argument("--planted-only", action="store_true", help="only whether planted faults are reported")
    parser.add_argument("--compiler", help="the C++ compiler; clang++ where it is there, g++ for asan where not")
    asked = parser.parse_args()
    sanitizer = SANITIZERS[asked.preset]
    compiler = asked.compiler or clang() or gcc()
    if compiler is None or (sanitizer.name == "tsan" and family(compiler) != "clang"):
        print(f"{sanitizer.name} needs clang++ and its OpenMP: apt-get install clang libomp-dev")
        return 1
    try:
        libraries = [sanitizer.runtime(compiler), *([archer(compiler)] if sanitizer.name == "tsan" else [])]
    except FileNotFoundError as missing:
        print(f"{sanitizer.name} cannot run: missing {missing}")
        return 1
    print(f"{sanitizer.name}: {compiler}", *libraries)
    checks = {
        "planted faults are reported": lambda: check_faults(sanitizer, compiler, asked.quick),
        "nothing else is": lambda: check_ours(sanitizer, compiler, asked.quick),
    }
    if asked.planted_only:
        checks.popitem()
    failed = False
    for name, check in checks.items():
        begin = monotonic()
        wrong = check()
        failed |= bool(wrong)
        print(f"{sanitizer.name}: {name}: {'NO' if wrong else 'yes'} ({monotonic() - begin:.0f} s)", flush=True)
        for line in wrong:
            print(f"  {line}")
    return int(failed)


def check_faults(sanitizer: Sanitizer, compiler: str, quick: bool) -> list[str]:
    """Plant each fault that this sanitizer sees; those that it did not report."""
    wanted = [fault for fault in _faults_for(sanitizer, compiler) if not quick or fault.text.backend == "openmp"]
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch)
        plant(wanted, tree)
        backends = {fault.text.backend for fault in wanted}
        only = [f"-DPY_BACKENDS_{name.upper()}={'ON' if name in backends else 'OFF'}" for name in BACKENDS["asan"]]
        build = built(sanitizer, compiler, tree, [*only, "-DPY_BACKENDS_CEILINGS=OFF", *_sets(best=True)])
        missed = []
        for fault in wanted:
            # ThreadSanitizer sees no access of more than 16 bytes: of the registers, only those of SSE.
            target = "sse" if fault.text.backend == "avx" and sanitizer.name == "tsan" else ""
            asked = fault.text.kernel, fault.text.backend, _variant(fault), target, *fault.sizes
            build.run(["-c", _CALL, *asked], tree, tree / "reports")
            said = _said(tree / "reports")
            if _REPORT_OF[fault.instrument] not in said:
                missed.append(f"{fault.name}: {fault.instrument}: {said[:300] or 'nothing was reported'}")
        return missed


_REPORT_OF = {
    table.WRITE: "AddressSanitizer",
    table.OVERFLOW: "runtime error: signed integer overflow",
    table.RACE: "ThreadSanitizer: data race",
}


def _faults_for(sanitizer: Sanitizer, compiler: str) -> list[Change]:
    """Those that a sanitizer of this compiler sees."""
    kinds = [table.RACE] if sanitizer.name == "tsan" else [table.WRITE, table.OVERFLOW]
    found = table.planted_by("modules", *kinds)
    return [fault for fault in found if fault.compiler in {None, family(compiler)}]


def check_ours(sanitizer: Sanitizer, compiler: str, quick: bool) -> list[str]:
    """Run the tests on our own modules; what was reported, or failed."""
    build = built(sanitizer, compiler, CLONE, _sets(best=quick))
    reports = build.modules.parent / "reports"
    tests = [*(QUICK_TESTS if quick else TESTS), *_NOT_FOR.get(sanitizer.name, ())]
    backends = BACKENDS[sanitizer.name]
    # Tests that take long are left out where -m does not name them.
    markers = f"({' or '.join(backends)}) and (slow or not slow)"
    chosen = "-m", markers, "--backend", ",".join(backends)
    code = build.run(["-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *tests], CLONE, reports)
    wrong = list(REPORTED.findall(_said(reports)))
    if code:
        wrong.append(f"pytest ended with code {code}")
    if wrong:
        print(_said(reports))
    return wrong


def plant(wanted: list[Change], tree: Path) -> None:
    """A clone in `tree` whose only compiled texts are the faulty ones, each a variant."""
    for name in ("cmake", "cpp_ext", "kernels", "py_backends"):
        shutil.copytree(CLONE / name, tree / name, ignore=shutil.ignore_patterns("*.so", "build.*.json", "__pycache__"))
    for name in ("CMakeLists.txt", "CMakePresets.json"):
        shutil.copy(CLONE / name, tree)
    texts = {fault: fault.faulty_text(_folder(tree, fault)) for fault in wanted}
    for backend in BACKENDS["asan"]:
        for text in tree.glob(f"kernels/*/*/{backend}.cpp"):
            if text not in {each.path for each in texts.values()}:
                text.unlink()


def _folder(tree: Path, fault: Change) -> Path:
    """The folder of a new variant, with the headers of the one that it is made from."""
    folder = tree / "kernels" / fault.text.kernel / _variant(fault)
    folder.mkdir()
    for header in (CLONE / "kernels" / fault.text.kernel / fault.text.variant).glob("*.hpp"):
        shutil.copy(header, folder)
    return folder


def _variant(fault: Change) -> str:
    return re.sub("[^a-z0-9]+", "_", fault.name)


def built(sanitizer: Sanitizer, compiler: str, tree: Path, options: Sequence[str]) -> Build:
    """The modules of a preset from the sources in `tree`; SystemExit, with the compiler's words, where they fail."""
    pythons = [f"-DPython_EXECUTABLE={sys.executable}", f"-DCMAKE_CXX_COMPILER={compiler}", "-DPY_BACKENDS_SYCL=OFF"]
    # A folder that another compiler has used would be configured without the variables of the preset.
    steps = [["--fresh", "--preset", sanitizer.name, *pythons, *options], ["--build", "--preset", sanitizer.name]]
    for step in steps:
        done = subprocess.run(
            [shutil.which("cmake") or "cmake", *step], cwd=tree, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"cmake {' '.join(step)} failed:\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
    return Build(sanitizer, compiler, tree / "build" / sanitizer.name / "modules")


def _sets(*, best: bool) -> list[str]:
    """The instruction sets to compile for: the best of this machine, which all but `avx` take, and SSE; else all."""
    from py_backends.backend import _cpu_kernels

    sets = {_cpu_kernels.best_instruction_set("cpp"), "sse"} if best else ()
    return [f"-DPY_BACKENDS_ONLY={';'.join(sorted(sets))}"]


def archer(compiler: str) -> Path:
    """What tells ThreadSanitizer what clang's OpenMP waits for; FileNotFoundError where it is not there."""
    path = Path(compiler).resolve().parent.parent / "lib" / "libarcher.so"
    if not path.is_file():
        raise FileNotFoundError(f"{path}, of the package libomp-dev of that clang")
    return path


def _said(reports: Path) -> str:
    return "\n".join(path.read_text(errors="replace") for path in sorted(reports.glob("*")))


if __name__ == "__main__":
    sys.exit(main())
