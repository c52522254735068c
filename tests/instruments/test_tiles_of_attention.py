"""attention for AMX on a model of its instructions, which most CPUs lack."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conftest import after_a_change
from faults.table import Change, planted_by, the_first_now
from on_a_model import FAULTY, OnModel
from sanitizers import HERE

from py_backends import registry
from py_backends.contract import Array
from py_backends.results.check import check_output, references_of

pytestmark = [
    pytest.mark.avx,
    pytest.mark.skipif(
        platform.machine() != "x86_64", reason="this is no x86-64 CPU (to change that: one; AMX is for x86-64)"
    ),
]
ROOT = HERE.parents[1]
TEXT = Path("kernels/attention/tuned/avx.cpp")
DRIVER = "run_attention.cpp"
SHAPES = [(1, 1, 1), (5, 3, 17), (33, 33, 31), (70, 64, 300), (150, 65, 40), (32, 257, 64), (0, 5, 3), (5, 0, 3)]
"""One block of keys and several, tiles that are full and tiles that are not, and queries of several panels."""


class Program(OnModel):
    """The text, compiled for the model."""

    def wrong(self, shapes: Sequence[tuple[int, int, int]]) -> str | None:
        """What is wrong with its results at these shapes; None if nothing is."""
        cases = [inputs_of(shape) for shape in shapes]
        printed, failure = self.answer(
            b"".join(
                f"{m} {d} {n} 2\n".encode() + b"".join(array.tobytes() for array in inputs)
                for (m, d, n), inputs in zip(shapes, cases, strict=True)
            )
        )
        if failure:
            return failure
        problem, begin = registry.problem("attention"), 0
        for (m, d, n), inputs in zip(shapes, cases, strict=True):
            output = np.frombuffer(printed, np.float32, m * d, begin).reshape(m, d)
            begin += output.nbytes
            (reference,) = references_of(problem, inputs, (m, d, n), output.dtype)
            verdict = check_output(output, reference, problem.rule)
            if verdict.reason:
                return f"{m} x {d} x {n}: {verdict.reason}"
        assert begin == len(printed)
        return None


def inputs_of(shape: tuple[int, int, int]) -> list[Array]:
    """Drawn ones. The scores of some queries are in the thousands, and every eighth is of zeros."""
    m, d, n = shape
    drawn = np.random.default_rng(5)
    q, k, v = (drawn.standard_normal(size) for size in ((m, d), (n, d), (n, d)))
    q[1::3] *= 100
    q[::8] = 0
    return [each.astype(ml_dtypes.bfloat16) for each in (q, k, np.rint(4 * v))]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(tmp_path_factory.mktemp("tiles"), ROOT / TEXT, DRIVER)


@after_a_change("kernels/attention", "cpp_ext", "tests/instruments")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_right(program: Program, shape: tuple[int, int, int]) -> None:
    assert program.wrong([shape]) is None


@pytest.mark.slow
@pytest.mark.parametrize("fault", the_first_now(planted_by("tiles_of_attention")))
def test_a_planted_fault_is_noticed(tmp_path: Path, fault: Change) -> None:
    """Else nothing above would be tested."""
    fault.faulty_kernels(tmp_path)
    assert Program(tmp_path, tmp_path / TEXT, DRIVER, FAULTY).wrong(SHAPES)
