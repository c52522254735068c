"""matmul on the tiles of this CPU: what its instructions compute is what the model of them does, bit for bit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from products import Case, OfProducts, exact, instruction, rounded_array, spread

import py_backends as pb
from py_backends.conformance.at_hand import targets_of, why_missing
from py_backends.contract import Array, Target

pytestmark = pytest.mark.slow

SYCL = "sycl"


@dataclass(frozen=True)
class Tiles:
    """The target `amx` of a backend."""

    backend: str

    def results(self, *cases: Case) -> list[Array]:
        return [self._result(case) for case in cases]

    def _result(self, case: Case) -> Array:
        dtype = np.int32 if case.a.dtype == np.int8 else np.float32
        c = _placed(np.full((len(case.a), case.b.shape[1]), -1, dtype), case.offset)
        a, b = (_placed(array, case.offset) for array in (case.a, case.b))
        threads = min(case.threads, len(os.sched_getaffinity(0)))
        return pb.matmul(a, b, out=c, backend=self.backend, target="amx", threads=threads)


def _placed(array: Array, offset: int) -> Array:
    """A copy with so many elements before the first."""
    memory = np.empty(offset + array.size, array.dtype)
    copy = memory[offset:].reshape(array.shape)
    copy[...] = array
    return copy


def amx_or_skip(backend: str) -> Target:
    target = next((each for each in targets_of(backend) if each.name == "amx"), None)
    if target is None or not target.available:
        pytest.skip(f"{backend} amx: {why_missing(backend, target) or 'it has no such target here'}")
    return target


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("avx", marks=pytest.mark.avx),
        pytest.param("numba_cpu", marks=[pytest.mark.numba_cpu, pytest.mark.nightly]),
        pytest.param(SYCL, marks=[pytest.mark.sycl, pytest.mark.nightly]),
    ],
)
def program(request: pytest.FixtureRequest) -> Tiles:
    target = amx_or_skip(request.param)
    if not target.environment.items() <= os.environ.items():
        needed = ", ".join(target.environment)
        pytest.skip(f"this process was started without {needed}: test_sycl_with_its_variables starts one that has them")
    return Tiles(request.param)


class TestProducts(OfProducts):
    """What they compute."""

    @pytest.mark.nightly
    @pytest.mark.parametrize("k", [1, 7, 32])
    def test_every_bit_of_a_hundred_thousand_numbers_is_that_of_one_instruction(self, program: Tiles, k: int) -> None:
        case = Case(spread((320, k), "bfloat16", 5), spread((k, 320), "bfloat16", 6), threads=2)
        expected = rounded_array(instruction(exact(case.a), exact(case.b)))
        np.testing.assert_array_equal(program.results(case)[0], expected)


@pytest.mark.nightly
@pytest.mark.sycl
def test_sycl_with_its_variables() -> None:
    """Its target needs variables with which a process has to start."""
    variables = amx_or_skip(SYCL).environment
    if variables.items() <= os.environ.items():
        pytest.skip("this process was started with its variables, so it runs the tests itself")
    tests = [sys.executable, "-m", "pytest", "-q", "-m", SYCL, __file__]
    run = subprocess.run(tests, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:]
    assert re.search(r"^[4-9]\d passed, 1 skipped", run.stdout, re.MULTILINE), run.stdout[-4000:]
