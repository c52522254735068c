"""The texts of CUDA, SYCL and OpenCL on threads of the host, under its compilers' sanitizers.

CUDA's are those that the emulation runs, behind the same prelude. The others need clang++.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import launched
import pytest
from compilers import clang, gcc
from faults import table
from faults.table import Change
from host_threads import LANGUAGES, Case, Program, compiled_driver
from sanitizers import ADDRESS, SANITIZERS, THREADS, Sanitizer

from py_backends import registry
from py_backends.kernel_text import KernelText

pytestmark = pytest.mark.slow


def cases(kernel: str) -> list[Case]:
    """Shapes in both dtypes; the larger also from an odd place on, so that they cannot be taken in vectors."""
    problem = registry.problem(kernel)
    several = launched.interpreted_sizes(problem) + launched.larger_sizes(problem)
    chosen = [(sizes, dtype) for sizes in several for dtype in ("float32", "float64")]
    return [
        Case(sizes, dtype, offset)
        for sizes, dtype in chosen
        for offset in ((0, 1) if math.prod(sizes) > 10_000 or len(sizes) == 1 else (0,))
    ]


Build = Callable[[KernelText, str | None, Sanitizer], Program]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles a text, with the driver that all of a compiler share."""

    @cache
    def driver(sanitizer: Sanitizer, compiler: str) -> Path:
        return compiled_driver(sanitizer, compiler, tmp_path_factory.mktemp("driver"))

    def made(text: KernelText, form: str | None, sanitizer: Sanitizer) -> Program:
        compiler = compiler_for(text.backend)
        if compiler is None:
            pytest.skip(f"the texts of {text.backend} need clang++ (to change that: apt-get install clang)")
        folder = tmp_path_factory.mktemp("program")
        return Program(text, form, sanitizer, compiler, folder, driver(sanitizer, compiler))

    return made


def compiler_for(backend: str) -> str | None:
    return clang() if LANGUAGES[backend].needs_clang else gcc()


def texts() -> Iterator[Any]:
    """Every text with the kinds of device that it is written for."""
    for backend, language in LANGUAGES.items():
        for kernel in registry.kernel_names():
            for variant, text in registry.kernel_texts(kernel, backend).items():
                for form in language.forms:
                    name = "-".join(filter(None, (backend, kernel, variant, form)))
                    yield pytest.param(text, form, marks=marks_of(backend), id=name)


def marks_of(backend: str) -> list[pytest.MarkDecorator]:
    """What clang++ compiles takes too long for every change."""
    return [getattr(pytest.mark, backend), *[pytest.mark.nightly] * LANGUAGES[backend].needs_clang]


def with_faults(*kinds: str) -> Any:
    """Planted ones of some kinds as parameters."""
    return pytest.mark.parametrize(
        "fault",
        [
            pytest.param(fault, marks=marks_of(fault.text.backend), id=fault.name)
            for fault in table.planted_by("host_threads", *kinds)
        ],
    )


@pytest.mark.nightly
@pytest.mark.parametrize("instrument", [ADDRESS.name, THREADS.name])
@pytest.mark.parametrize(("text", "form"), list(texts()))
def test_nothing_is_reported(build: Build, text: KernelText, form: str | None, instrument: str) -> None:
    outcome = build(text, form, SANITIZERS[instrument]).run(cases(text.kernel))
    assert outcome.reports == [], outcome.failure
    assert outcome.failure is None
    assert outcome.wrong == {}


@with_faults(table.WRITE, table.READ)
def test_a_planted_access_out_of_bounds_is_reported(build: Build, tmp_path: Path, fault: Change) -> None:
    said = reported(build, tmp_path, fault, ADDRESS)
    # Where both see it, UndefinedBehaviorSanitizer may be the first, and end the program: it is with g++ 14.
    words = "AddressSanitizer", "out of bounds", "insufficient space for an object"
    assert any(each in said for each in words), said


@with_faults(table.OVERFLOW)
def test_a_planted_overflow_is_reported(build: Build, tmp_path: Path, fault: Change) -> None:
    assert "integer overflow" in reported(build, tmp_path, fault, ADDRESS)


@with_faults(table.RACE)
def test_a_planted_race_is_reported(build: Build, tmp_path: Path, fault: Change) -> None:
    assert "data race" in reported(build, tmp_path, fault, THREADS)


@with_faults(table.BARRIER)
def test_a_barrier_that_some_work_items_miss_is_reported(build: Build, tmp_path: Path, fault: Change) -> None:
    assert "its barrier" in reported(build, tmp_path, fault, THREADS)


def reported(build: Build, folder: Path, fault: Change, sanitizer: Sanitizer) -> str:
    """What an instrument says of a planted fault."""
    program = build(fault.faulty_text(folder), fault.form, sanitizer)
    return "\n".join(program.run([Case(fault.sizes, "float32")]).reports)
