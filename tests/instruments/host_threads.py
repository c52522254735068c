"""Texts for devices, compiled by the host's compiler and run on its threads, so that its sanitizers see them.

A work item is a thread, a group's barrier a barrier of threads, and local memory an array that they share: a race
between work items is then a race between threads, and an access past an array one that a sanitizer knows. See
on_threads/work_items.hpp.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sanitizers import HERE, REPORTED, Sanitizer

import py_backends
from py_backends._contract import Array, KernelText
from py_backends.harness.check import judge

_DRIVER = HERE / "on_threads"
_TYPES = {"float32": "float", "float64": "double"}
_LONGEST = 240.0
"""Seconds after which a program is taken for hung: work items that wait for each other."""


@dataclass(frozen=True)
class Language:
    """How a programming model's texts become C++ for the host.

    forms: the kinds of device that texts are written for; None where they make no difference.
    includes: what comes before a text.
    macros: what its backend would tell it of the device.
    needs_clang: whether texts use extensions of that compiler.
    """

    forms: tuple[str | None, ...]
    includes: tuple[str, ...]
    macros: tuple[str, ...] = ()
    needs_clang: bool = False


_CUDA_PRELUDE = Path(py_backends.__file__).with_name("_cuda_on_sycl.hpp")
LANGUAGES = {
    "cuda": Language((None,), ("<sycl/sycl.hpp>", f'"{_CUDA_PRELUDE}"')),
    # Few lanes and a small cache, so that small shapes have every kind of edge, and are streamed.
    "sycl": Language(("CPU", "GPU"), ("<sycl/sycl.hpp>",), ("LANES=4", "CACHE=4096"), needs_clang=True),
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


class Program:
    """A text for one kind of device, compiled for a sanitizer in both dtypes."""

    def __init__(
        self, text: KernelText, form: str | None, sanitizer: Sanitizer, compiler: str, folder: Path, driver: Path
    ) -> None:
        """Compile; RuntimeError with what the compiler said where it refuses. `driver` is what `compiled_driver` made."""
        self._text, self._sanitizer = text, sanitizer
        self._stages = text.stages(form)
        source, self._path = folder / "text.cpp", folder / "program"
        source.write_text(self._source(), encoding="utf-8")
        macros = [f"-D{macro}" for macro in LANGUAGES[text.backend].macros]
        _compile(compiler, sanitizer, [str(source), str(driver), *macros, "-o", str(self._path), "-pthread"])

    def run(self, cases: Sequence[Case]) -> Outcome:
        """Run cases one after the other in one process, and judge what each gave."""
        drawn = [self._inputs(case) for case in cases]
        request = b"".join(
            self._request(case) + b"".join(array.tobytes() for array in inputs)
            for case, inputs in zip(cases, drawn, strict=True)
        )
        environment = {"PATH": "/usr/bin:/bin", **self._sanitizer.environment()}
        ran = subprocess.run([self._path], input=request, capture_output=True, timeout=_LONGEST, env=environment)
        said = ran.stderr.decode(errors="replace")
        reports = REPORTED.findall(said)
        if reports or ran.returncode:
            return Outcome(reports, said[-4000:] or f"exit code {ran.returncode}", {})
        return Outcome([], None, dict(self._wrong(cases, drawn, ran.stdout)))

    def _source(self) -> str:
        """The text twice, once for each team, and a table of what it launches."""
        name, path = self._text.backend, self._text.path
        stages = ",\n".join(
            f"    {{{{&Entry<&even::{kernel}<T>>::run, &Entry<&odd::{kernel}<T>>::run}}, "
            f"{{{', '.join(map(str, _three(items.group)))}}}, {len(items.group)}}}"
            for kernel, items in self._stages.kernels
        )
        problem, scratch = self._text.problem, str(self._stages.scratch is not None).lower()
        sizes = len(problem.dimensions)
        arrays = len(problem.shapes((1,) * sizes))
        texts = ",\n".join(
            f'    {{"{dtype}", sizeof({kind}), {arrays}, {scratch}, {sizes}, {len(self._stages.kernels)}, '
            f"stages<{kind}>}}"
            for dtype, kind in _TYPES.items()
        )
        includes = "\n".join(f"#include {include}" for include in LANGUAGES[name].includes)
        teams = "\n".join(f'namespace {team} {{\n#include "{path}"\n}}' for team in ("even", "odd"))
        return (
            f"{includes}\n{teams}\n"
            "using on_threads::Entry;\n"
            f"template <typename T>\nconstexpr on_threads::Stage stages[] = {{\n{stages}}};\n"
            f"const on_threads::Text on_threads::texts[] = {{\n{texts}}};\n"
            f"const int on_threads::number_of_texts = {len(_TYPES)};\n"
        )

    def _request(self, case: Case) -> bytes:
        named = self._text.named_sizes(case.sizes)
        elements = [math.prod(shape) for shape in self._text.problem.shapes(case.sizes)]
        groups = [count for _, items in self._stages.kernels for count in _three(items.groups(named))]
        scratch = self._stages.scratch_elements(named) or 0
        numbers = [scratch, case.offset, *elements, *case.sizes, *groups]
        return " ".join([case.dtype, *map(str, numbers)]).encode() + b"\n"

    def _inputs(self, case: Case) -> list[Array]:
        draw = np.random.default_rng(7)
        shapes = self._text.problem.shapes(case.sizes)[:-1]
        return [draw.standard_normal(shape).astype(case.dtype) for shape in shapes]

    def _wrong(self, cases: Sequence[Case], drawn: list[list[Array]], answer: bytes) -> Iterator[tuple[Case, str]]:
        problem, begin = self._text.problem, 0
        for case, inputs in zip(cases, drawn, strict=True):
            shape = problem.shapes(case.sizes)[-1]
            output = np.frombuffer(answer, case.dtype, math.prod(shape), begin).reshape(shape)
            begin += output.nbytes
            if reason := judge(output, problem.reference(inputs), problem.rule).reason:
                yield case, reason
        assert begin == len(answer)


def compiled_driver(sanitizer: Sanitizer, compiler: str, folder: Path) -> Path:
    """What runs texts, once for all texts of a compiler."""
    made = folder / "run.o"
    _compile(compiler, sanitizer, [str(_DRIVER / "run.cpp"), "-c", "-o", str(made)])
    return made


def _compile(compiler: str, sanitizer: Sanitizer, arguments: list[str]) -> None:
    # Without optimisation an access that changes nothing would be seen too, but texts take ten times as long.
    always = ["-std=c++17", "-O1", "-g1", "-ffp-contract=off", "-w", f"-I{_DRIVER}", *sanitizer.flags]
    done = subprocess.run([compiler, *always, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{compiler} refuses a text:\n{done.stderr[-4000:]}")


def _three(counts: Sequence[int]) -> tuple[int, ...]:
    return (*counts, 1, 1)[:3]
