"""Which files belong to which programming model, and which parts of them are run on this machine.

A path is a registration here too: kernels/KERNEL/VARIANT/BACKEND.* is a text of that backend, and so is what it
includes, or imports from beside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from py_backends import registry, source_head
from py_backends.backend import _cpu_kernels
from py_backends.contract import Target
from py_backends.errors import BackendUnavailable

CLONE = Path(__file__).parent.parent.parent
_IMPORT = re.compile(r"^from \.(\w+) import ", re.MULTILINE)
_HOST_PARTS = {
    "cuda": ("py_backends/backend/_cupy.py",),
    "jax": ("py_backends/backend/jax.py",),
    "numba_cuda": ("py_backends/backend/numba_cuda.py",),
    "opencl": ("py_backends/backend/opencl.py",),
    "sycl": ("py_backends/backend/_sycl.py", "cpp_ext/sycl_compiler.cpp"),
}
"""Where the host waits for the device. The other backends' launches return when they are done."""
_ON_A_MODEL = "amx"
"""The instruction set that is tested apart, and a word of its files' names."""
_TENSOR_CORES = "cuda_tensor_cores.hpp"
"""The file that the emulation runs in narrow formats alone, and in float64 where it is told to. The text that includes
it chooses. A quick run tries no narrow format in the emulation."""
_FORMATS = "kernels/formats.hpp"
"""The file that widens and narrows numbers. The emulation runs it in narrow formats alone."""
_NARROW_PARTS = ("cuda_squares.hpp", "cuda_warp_share.hpp", "cuda_tiles.hpp", "cuda_block.hpp")
"""The files that turn narrow elements over in registers, that multiply them with attention's weights by tensor cores,
that copy them for that, and that choose it. The emulation runs that in narrow formats alone."""
_INCLUDES_NARROW_PARTS = re.compile(f'#include "(?:{"|".join((_TENSOR_CORES, *_NARROW_PARTS))})"'.replace(".", r"\."))
_INSTRUCTION_SETS = {"avx512": "AVX512F", "avx2": "FMA|AVX2|AVX"}

User = tuple[str, str]
"""A kernel and a variant."""
Conditions = tuple[tuple[str, bool], ...]
"""Of the preprocessor, the innermost first, and whether each holds."""


@dataclass(frozen=True)
class Text:
    """A file that one backend runs.

    file: relative to the clone.
    users: the kernels and variants of the backend whose text it is, or whose text includes or imports it. Of none,
    where it is the host's part.
    """

    backend: str
    file: str
    users: tuple[User, ...]

    @property
    def content(self) -> bytes:
        return (CLONE / self.file).read_bytes()

    @property
    def is_cuda(self) -> bool:
        """Whether the backend's kernels are written in CUDA."""
        return any(CLONE.glob(f"kernels/*/*/{self.backend}.cu"))


@dataclass(frozen=True)
class Context:
    """What stands around a place in a text: conditions of the preprocessor, the names of its function and its class."""

    conditions: Conditions = ()
    function: str | None = None
    owner: str | None = None


@dataclass(frozen=True)
class Run:
    """A run of the suite on a text.

    form: of a text that is written for two kinds of device, which of them; else empty.
    formats: the only number formats to run, thoroughly; empty for a quick run of all.
    """

    form: str = ""
    formats: tuple[str, ...] = ()


_NARROW = ("float16", "int8")
_IN_NARROW_FORMATS = Run(formats=_NARROW)
_ON_WARPGROUPS = Run("WARPGROUPS", _NARROW)
_WITH_FLOAT64 = Run("FLOAT64", ("float64",))


@dataclass(frozen=True)
class Place:
    """What has to run for a change of a text to be seen.

    runs: in this order.
    instruction_sets: of texts in C++, that they are run with, in this order.
    elsewhere: why this machine cannot run it; None where it can.
    """

    runs: tuple[Run, ...] = (Run(),)
    instruction_sets: tuple[str | None, ...] = (None,)
    elsewhere: str | None = None


def backends() -> list[str]:
    """Those that have a kernel text."""
    return sorted({path.stem for path in CLONE.glob("kernels/*/*/*.*")} & set(registry.backend_names()))


def texts_of(backend: str) -> list[Text]:
    """Every file that the backend runs, each once."""
    users: dict[str, list[User]] = {}
    for path in sorted(CLONE.glob(f"kernels/*/*/{backend}.*")):
        for file in _with_included(path):
            users.setdefault(str(file.relative_to(CLONE)), []).append((path.parts[-3], path.parts[-2]))
    found = [Text(backend, file, tuple(of_file)) for file, of_file in users.items()]
    return found + [Text(backend, file, ()) for file in _HOST_PARTS.get(backend, ())]


def _with_included(path: Path) -> list[Path]:
    if path.suffix != ".py":
        return source_head.files_of(path)
    files = [path]
    for file in files:  # which grows meanwhile
        names = [f"{module}.py" for module in _IMPORT.findall(file.read_text(encoding="utf-8"))]
        files.extend(found for name in names if (found := (file.parent / name).resolve()) not in files)
    return files


class Machine:
    """What of a text runs here."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.targets: list[Target] = registry.backend(backend).targets()

    @property
    def target(self) -> Target:
        """The one that mutants are judged on: the first that is there and takes all; else one that says why not."""
        return next((each for each in self.targets if each.available and each.dtypes is None), self.targets[0])

    @cached_property
    def instruction_sets(self) -> list[str]:
        """Those that this CPU has of the backend's, best first; none where it is not compiled ahead of time."""
        try:
            sets = _cpu_kernels.instruction_sets(self.backend)
            return [name for name, _, there in sets if there and name != _ON_A_MODEL]
        except BackendUnavailable:
            return []

    def place(self, text: Text, context: Context) -> Place:
        """Where a part of a text is run."""
        if elsewhere := self._elsewhere(text, context):
            return Place(elsewhere=elsewhere)
        if text.file.endswith((".cpp", ".hpp")) and self.instruction_sets:
            return self._compiled(text, context.conditions)
        return Place(_runs(text, context))

    def _elsewhere(self, text: Text, context: Context) -> str | None:
        """Where a part of a text is run that this machine does not run; None if it does."""
        conditions = context.conditions
        if not self.target.available:
            return self.target.reason
        runs_cuda = text.is_cuda and not self.target.emulated
        if (_is_for_cuda(context) and not runs_cuda) or (self.target.emulated and _is_host_part(text, context)):
            return "runs on a GPU alone"
        if ("defined(_OPENMP)", False) in conditions:
            return "runs where there is no OpenMP alone"
        if ("defined(PY_BACKENDS_ASAN)", True) in conditions:
            return "runs under AddressSanitizer alone"
        if _ON_A_MODEL in Path(text.file).stem.split("_") or ("defined(__AMX_TILE__)", True) in conditions:
            return "runs on a model of its instructions: tests/instruments"
        return None

    def _compiled(self, text: Text, conditions: Conditions) -> Place:
        runs = [name for name in self.instruction_sets if name in {target.name for target in self.targets}]
        runs = runs or self.instruction_sets[:1]
        wanted = instruction_set(conditions)
        if wanted is None:
            return Place(instruction_sets=tuple(runs))
        elsewhere = None if wanted in runs else f"runs with {wanted} alone, and this CPU has better"
        return Place(instruction_sets=(wanted,), elsewhere=elsewhere)

    def target_name(self, instruction_set: str | None) -> str:
        """The target that runs texts compiled for an instruction set: of avx, which has one for each, that one."""
        names = [target.name for target in self.targets]
        return instruction_set if instruction_set in names else self.target.name


def instruction_set(conditions: Conditions) -> str | None:
    """The one that a text is compiled for under these conditions; None where it is any."""
    for condition, holds in conditions:
        for name, macros in _INSTRUCTION_SETS.items():
            if re.search(rf"__(?:{macros})__", condition):
                return name if holds else "sse"
    return None


def _is_for_cuda(context: Context) -> bool:
    """Whether only CUDA's compiler reads it, and for a GPU: other languages include some of the headers as well."""
    return any("__CUDA_ARCH__" in name and holds for name, holds in context.conditions)


def _is_host_part(text: Text, context: Context) -> bool:
    """Whether it is what the host does for a real GPU."""
    return context.owner == "Gpu" or text.file.endswith("_cupy.py")


def _runs(text: Text, context: Context) -> tuple[Run, ...]:
    if text.file.endswith(_TENSOR_CORES):
        of_warps = () if ("defined(WARPGROUPS)", True) in context.conditions else (_IN_NARROW_FORMATS, _WITH_FLOAT64)
        return (*of_warps, _ON_WARPGROUPS, Run())  # the last sees which formats the file takes when nothing is told
    if text.is_cuda and text.file == _FORMATS:
        return (_IN_NARROW_FORMATS,)
    if text.file.endswith(_NARROW_PARTS) or _INCLUDES_NARROW_PARTS.search(text.content.decode()):
        return (Run(), _IN_NARROW_FORMATS)
    return tuple(map(Run, _forms(text, context)))


def _forms(text: Text, context: Context) -> tuple[str, ...]:
    """For which kinds of device: told by the preprocessor, by the function's name, or both."""
    if not text.users or " on a GPU: " not in text.content.decode():
        return ("",)
    for condition, holds in context.conditions:
        if condition == "CPU":
            return ("CPU" if holds else "GPU",)
    return ("GPU",) if context.function == text.users[0][0] else ("CPU", "GPU")
