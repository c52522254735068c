"""Texts for devices, compiled by the host's compiler and run on its threads, so that its sanitizers see them.

A work item is a thread, a group's barrier a barrier of threads, and local memory an array that they share: a race
between work items is then a race between threads, and an access past an array one that a sanitizer knows. See
on_threads/work_items.hpp.
"""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from sanitizers import HERE, REPORTED, Sanitizer

import py_backends
from py_backends.backend import opencl
from py_backends.contract import Array
from py_backends.kernel_text import KernelText, Stages, WorkItems
from py_backends.results.check import check_output, references_of

_DRIVER = HERE / "on_threads"
_INCLUDED = re.compile(r'#include "(.+)"')
_TYPES = {"float32": "float", "float64": "double"}
_TEAMS = ("even", "odd")
_LONGEST = 240.0
"""Seconds after which a program is taken for hung: work items that wait for each other."""


@dataclass(frozen=True)
class Language:
    """How a programming model's texts become C++ for the host.

    forms: the kinds of device that texts are written for; None where they make no difference.
    includes: what comes before a text.
    macros: what its backend would tell it of the device.
    needs_clang: whether texts use extensions of that compiler.
    separate: whether a text is a program of its own, in a language that C++ cannot include.
    """

    forms: tuple[str | None, ...]
    includes: tuple[str, ...]
    macros: tuple[str, ...] = ()
    needs_clang: bool = False
    separate: bool = False


_CUDA_PRELUDE = Path(py_backends.__file__).parent / "backend" / "_cuda_on_sycl.hpp"
_NUMBER_FORMATS = HERE.parent.parent / "kernels" / "formats.hpp"  # once, and not in each team's namespace
LANGUAGES = {
    "cuda": Language((None,), ("<sycl/sycl.hpp>", f'"{_CUDA_PRELUDE}"', f'"{_NUMBER_FORMATS}"')),
    # Few lanes and a small cache, so that small shapes have every kind of edge, and are streamed.
    "sycl": Language(
        ("CPU", "GPU"), ("<sycl/sycl.hpp>", f'"{_NUMBER_FORMATS}"'), ("LANES=4", "CACHE=4096"), needs_clang=True
    ),
    "opencl": Language(("CPU", "GPU"), ('"work_items.hpp"',), ("CACHE_BYTES=4096L",), needs_clang=True, separate=True),
}


@dataclass(frozen=True)
class Case:
    """One run of a text: its sizes and dtype, and how many elements lie before each array's first."""

    sizes: tuple[int, ...]
    dtype: str
    offset: int = 0


@dataclass(frozen=True)
class Outcome:
    """What came of a program: its reports, what else it wrote if it failed, and which cases came out wrong."""

    reports: list[str]
    failure: str | None
    wrong: dict[Case, str]


def _folder_of(text: KernelText) -> Path:
    """The folder whose files a text includes, and a copy of it with a fault too."""
    return _NUMBER_FORMATS.parent / text.kernel / text.variant


def _included_once(text: KernelText) -> Iterator[Path]:
    """Headers that a text includes on every device, and that hold once for a program.

    They come before the teams: in a team's namespace they would be in that of the first alone.
    """
    conditions = 0
    for line in text.path.read_text(encoding="utf-8").splitlines():
        conditions += line.startswith("#if") - line.startswith("#endif")
        included = _INCLUDED.match(line)
        if included and not conditions:
            header = _folder_of(text) / included[1]
            if "#pragma once" in header.read_text(encoding="utf-8"):
                yield header


class Program:
    """A text for one kind of device, compiled for a sanitizer in both dtypes."""

    def __init__(
        self, text: KernelText, form: str | None, sanitizer: Sanitizer, compiler: str, folder: Path, driver: Path
    ) -> None:
        """Compile; RuntimeError with what the compiler said where it refuses.

        driver: what `compiled_driver` made.
        """
        self._text, self._sanitizer = text, sanitizer
        self._stages = text.stages(form)
        language, source, self._path = LANGUAGES[text.backend], folder / "text.cpp", folder / "program"
        source.write_text(self._source(), encoding="utf-8")
        macros = [f"-D{macro}" for macro in language.macros]
        files = [str(source), str(driver), f"-iquote{_folder_of(text)}"]
        if language.separate:
            files.append(str(_DRIVER / "opencl.cpp"))
            files += _objects(text, self._stages, [*macros, f"-D{form}=1"], sanitizer, compiler, folder)
            files.append("-fno-sanitize=function")  # in that other language functions have other types
        _compile(compiler, sanitizer, [*files, *macros, "-o", str(self._path), "-pthread"])

    def run(self, cases: Sequence[Case]) -> Outcome:
        """Run cases one after the other in one process, and judge what each gave."""
        drawn = [self._inputs(case) for case in cases]
        request = b"".join(
            self._request(case) + b"".join(array.tobytes() for array in inputs)
            for case, inputs in zip(cases, drawn, strict=True)
        )
        environment = {"PATH": "/usr/bin:/bin", **self._sanitizer.environment()}
        ran = subprocess.run(
            [self._path], input=request, capture_output=True, timeout=_LONGEST, env=environment, check=False
        )
        said = ran.stderr.decode(errors="replace")
        reports = REPORTED.findall(said)
        if reports or ran.returncode:
            return Outcome(reports, said[-4000:] or f"exit code {ran.returncode}", {})
        return Outcome([], None, dict(self._wrong(cases, drawn, ran.stdout)))

    def _source(self) -> str:
        """The text twice, once for each team, and a table of what it launches."""
        name, path = self._text.backend, self._text.path
        separate = LANGUAGES[name].separate
        stages = ",\n".join(_stage(kernel, items, separate) for kernel, items in self._stages.kernels)
        problem, scratch = self._text.problem, str(self._stages.scratch is not None).lower()
        sizes = len(problem.parameters)
        arrays = len(problem.shapes((1,) * sizes))
        texts = ",\n".join(
            f'    {{"{dtype}", sizeof({kind}), {problem.result_dtype(np.dtype(dtype)).itemsize}, {arrays}, {scratch}, '
            f"{sizes}, {len(self._stages.kernels)}, stages<{kind}>}}"
            for dtype, kind in _TYPES.items()
        )
        headers = (f'"{header}"' for header in _included_once(self._text))
        includes = "\n".join(f"#include {include}" for include in [*LANGUAGES[name].includes, *headers])
        teams = "\n".join(f'namespace {team} {{\n#include "{path}"\n}}' for team in _TEAMS)
        if separate:
            counted = problem.result_dtype(np.dtype("float32")) == np.int32  # in every run
            pointers = ", ".join(
                ["const {0}*"] * (arrays - 1)
                + ["int*" if counted else "{0}*"]
                + ["{0}*"] * (self._stages.scratch is not None)
            )
            declared = "void {1}({2}, " + ", ".join(["long"] * sizes) + ");"
            teams = "\n".join(
                'extern "C" ' + declared.format(kind, _symbol(team, kernel, kind), pointers.format(kind))
                for team, (kernel, _), kind in product(_TEAMS, self._stages.kernels, _TYPES.values())
            )
            teams += "\n" + "\n".join(
                _choice(team, kernel) for team, (kernel, _) in product(_TEAMS, self._stages.kernels)
            )
        return (
            f"{includes}\n{teams}\n"
            "using on_threads::Entry;\n"
            f"template <typename T>\nconstexpr on_threads::Stage stages[] = {{\n{stages}}};\n"
            f"const on_threads::Text on_threads::texts[] = {{\n{texts}}};\n"
            f"const int on_threads::number_of_texts = {len(_TYPES)};\n"
        )

    def _sizes(self, case: Case) -> tuple[int, ...]:
        """Those that one launch is told. A program has one: what comes before and after others is the host's."""
        named = self._text.named_sizes(case.sizes)
        if repeat := self._stages.repeat:
            named[repeat.number] = min(named[repeat.number], repeat.most)
        return tuple(named.values())

    def _request(self, case: Case) -> bytes:
        sizes = self._sizes(case)
        named = self._text.named_sizes(sizes)
        elements = [math.prod(shape) for shape in self._text.problem.shapes(sizes)]
        groups = [count for _, items in self._stages.kernels for count in _three(items.groups(named))]
        scratch = self._stages.scratch_elements(named) or 0
        numbers = [scratch, case.offset, *elements, *sizes, *groups]
        return " ".join([case.dtype, *map(str, numbers)]).encode() + b"\n"

    def _inputs(self, case: Case) -> list[Array]:
        draw = np.random.default_rng(7)
        shapes = self._text.problem.shapes(case.sizes)[:-1]
        return [draw.standard_normal(shape).astype(case.dtype) for shape in shapes]

    def _wrong(self, cases: Sequence[Case], drawn: list[list[Array]], answer: bytes) -> Iterator[tuple[Case, str]]:
        problem, begin = self._text.problem, 0
        for case, inputs in zip(cases, drawn, strict=True):
            sizes = self._sizes(case)
            shape = problem.shapes(sizes)[-1]
            result = problem.result_dtype(np.dtype(case.dtype))
            output = np.frombuffer(answer, result, math.prod(shape), begin).reshape(shape)
            begin += output.nbytes
            (reference,) = references_of(problem, inputs, sizes, np.dtype(case.dtype))
            if reason := check_output(output, reference, problem.rule).reason:
                yield case, reason
        assert begin == len(answer)


def _objects(
    text: KernelText, stages: Stages, macros: Sequence[str], sanitizer: Sanitizer, compiler: str, folder: Path
) -> list[str]:
    """A text in OpenCL C, compiled for each team and type, with no name in common but what the host provides."""
    made = []
    for team, (dtype, kind) in product(_TEAMS, _TYPES.items()):
        names = {kernel: _symbol(team, kernel, kind) for kernel, _ in stages.kernels}
        path = folder / f"{team}_{kind}.o"
        language = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-cl-ext=+cl_khr_fp64"]
        language += ["-Xclang", "-finclude-default-header"]
        types = [f"-D{name}={value}" for name, value in opencl.types(text.problem, np.dtype(dtype), 4).items()]
        preludes = [f"-I{_DRIVER}", "-include", "opencl.cl", "-include", str(opencl.FORMATS)]
        renamed = [f"-D{kernel}={name}" for kernel, name in names.items()]
        always = ["-O1", "-g1", "-ffp-contract=off", "-w", *sanitizer.flags]
        options = [*language, *always, *types, *preludes, *renamed, *macros]
        _call([compiler, *options, "-c", str(text.path), "-o", str(path)])
        _call(["objcopy", *(f"--keep-global-symbol={name}" for name in names.values()), str(path)])
        made.append(str(path))
    return made


def _symbol(team: str, kernel: str, kind: str) -> str:
    return f"{team}_{kernel}_{kind}"


def _stage(kernel: str, items: WorkItems, separate: bool) -> str:
    """The entry of one kernel in the table: for each team, and how its work items are grouped."""
    entries = ", ".join(f"&Entry<{_instance(team, kernel, separate)}>::run" for team in _TEAMS)
    return f"    {{{{{entries}}}, {{{', '.join(map(str, _three(items.group)))}}}, {len(items.group)}}}"


def _instance(team: str, kernel: str, separate: bool) -> str:
    """A kernel of a team for the type T, as C++ names it."""
    return f"{team}_{kernel}<T>" if separate else f"&{team}::{kernel}<T>"


def _choice(team: str, kernel: str) -> str:
    """What chooses among separate functions by the type T."""
    by_type = [_symbol(team, kernel, kind) for kind in _TYPES.values()]
    return (
        f"template <typename T>\nconstexpr auto {team}_{kernel} = &{by_type[0]};\n"
        f"template <>\nconstexpr auto {team}_{kernel}<double> = &{by_type[1]};"
    )


def compiled_driver(sanitizer: Sanitizer, compiler: str, folder: Path) -> Path:
    """What runs texts, once for all texts of a compiler."""
    made = folder / "run.o"
    _compile(compiler, sanitizer, [str(_DRIVER / "run.cpp"), "-c", "-o", str(made)])
    return made


def _compile(compiler: str, sanitizer: Sanitizer, arguments: list[str]) -> None:
    # Without optimisation an access that changes nothing would be seen too, but texts take ten times as long.
    always = ["-std=c++17", "-O1", "-g1", "-ffp-contract=off", "-w", f"-I{_DRIVER}", *sanitizer.flags]
    _call([compiler, *always, *arguments])


def _call(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stderr[-4000:]}")


def _three(counts: Sequence[int]) -> tuple[int, ...]:
    return (*counts, 1, 1)[:3]
