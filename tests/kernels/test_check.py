"""The judge accepts what the rules of agreement accept, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from py_backends import registry
from py_backends.contract import Array, Reference
from py_backends.errors import WrongRequest
from py_backends.results.check import check_output, references_of
from py_backends.results.report import Check
from py_backends.system.bits import same_bits

MATMUL, VECADD = registry.problem("matmul"), registry.problem("vecadd")


def vecadd_verdict(a: list[float], b: list[float], output: list[float], dtype: str = "float32") -> bool:
    reference = VECADD.reference([np.array(a, dtype), np.array(b, dtype)])
    return check_output(np.array(output, dtype), reference, VECADD.rule).check.passed


class TestBitwise:
    def test_signed_zeros_differ(self) -> None:
        assert vecadd_verdict([-0.0], [-0.0], [-0.0])
        assert not vecadd_verdict([-0.0], [-0.0], [0.0])

    def test_subnormals_must_not_be_flushed(self) -> None:
        tiny = float(np.finfo(np.float32).smallest_subnormal)
        assert vecadd_verdict([tiny], [tiny], [2 * tiny])
        assert not vecadd_verdict([tiny], [tiny], [0.0])

    def test_nan_is_judged_by_place(self) -> None:
        other_nan = -np.float32("nan")
        assert vecadd_verdict([np.inf, 1], [-np.inf, 1], [float(other_nan), 2])
        assert not vecadd_verdict([1, 1], [1, 1], [np.nan, 2])
        assert not vecadd_verdict([np.nan], [1], [1])

    def test_one_unit_in_the_last_place_is_wrong(self) -> None:
        assert not vecadd_verdict([1], [1], [float(np.nextafter(np.float32(2), np.float32(3)))])

    def test_figure_is_zero_or_nothing(self) -> None:
        reference = Reference(np.ones(3, np.float32))
        assert check_output(np.ones(3, np.float32), reference, "bitwise").check.error_over_bound == 0
        wrong = check_output(np.zeros(3, np.float32), reference, "bitwise")
        assert wrong.check.error_over_bound is None
        assert re.findall(r"\d+", wrong.reason or "") == ["3", "3", "0", "0", "1"], "3 of 3, at [0], 0 instead of 1"

    def test_another_dtype_cannot_be_judged(self) -> None:
        with pytest.raises(TypeError):
            check_output(np.ones(3, np.float64), Reference(np.ones(3, np.float32)), "bitwise")


class TestBlocks:
    """Elements are judged by blocks: a fault in any of them is found where it is."""

    SHAPE = (3, 50_000)

    def judged(
        self, at: tuple[int, int], wrong: float, overflow: Array | None = None
    ) -> tuple[str | None, float | None]:
        output = np.full(self.SHAPE, 1.5, np.float32)
        output[at] = wrong
        reference = Reference(np.ones(self.SHAPE), np.ones(self.SHAPE), overflow)
        verdict = check_output(output, reference, "componentwise")
        return verdict.reason, verdict.check.error_over_bound

    @pytest.mark.parametrize("at", [(0, 7), (1, 20_000), (2, 49_999)])
    def test_what_is_wrong_is_told_by_its_place(self, at: tuple[int, int]) -> None:
        reason, error = self.judged(at, 4.0)
        assert re.findall(r"\d+", reason or "") == ["1", "150000", *map(str, at), "4", "1", "1"]
        assert f"[{at[0]}, {at[1]}]" in (reason or "")
        assert error == 3
        assert self.judged(at, 2.0) == (None, 1.0)

    @pytest.mark.parametrize("at", [(0, 7), (1, 20_000), (2, 49_999)])
    def test_a_nan_is_wrong_and_no_figure(self, at: tuple[int, int]) -> None:
        reason, error = self.judged(at, np.nan)
        assert reason is not None
        assert error is None

    def test_what_may_overflow_is_excused_in_its_own_block(self) -> None:
        excused = np.zeros(self.SHAPE, bool)
        excused[2, 49_999] = True
        assert self.judged((2, 49_999), np.inf, excused)[0] is None
        assert self.judged((0, 7), np.inf, excused)[0] is not None


def matmul_inputs(m: int, n: int, k: int, dtype: str, seed: int = 0) -> tuple[Array, Array]:
    generator = np.random.default_rng(seed)
    return generator.standard_normal((m, k)).astype(dtype), generator.standard_normal((k, n)).astype(dtype)


def matmul_passes(output: Array, a: Array, b: Array) -> bool:
    return check_output(output, MATMUL.reference([a, b]), MATMUL.rule).check.passed


@pytest.mark.parametrize("dtype", ["float32", "float64"])
class TestComponentwise:
    @given(m=st.integers(0, 9), n=st.integers(0, 9), k=st.integers(0, 40), seed=st.integers(0, 99))
    def test_any_order_of_summation_passes(self, dtype: str, m: int, n: int, k: int, seed: int) -> None:
        a, b = matmul_inputs(m, n, k, dtype, seed)
        order = np.random.default_rng(seed).permutation(k)
        output = np.zeros((m, n), dtype)
        for p in order:
            output += np.outer(a[:, p], b[p, :])
        assert matmul_passes(output, a, b)

    def test_the_bound_is_the_last_error_that_passes(self, dtype: str) -> None:
        value, bound = np.zeros((2, 3)), np.full((2, 3), 2.0**-20)
        output = np.full((2, 3), 2.0**-20, dtype)
        assert check_output(output, Reference(value, bound), MATMUL.rule).check == Check(True, "componentwise", 1.0)
        output[1, 2] = np.nextafter(output[1, 2], output.dtype.type(1))
        assert not check_output(output, Reference(value, bound), MATMUL.rule).check.passed

    def test_every_element_counts(self, dtype: str) -> None:
        a, b = matmul_inputs(7, 8, 9, dtype)
        right = a @ b
        for index in np.ndindex(right.shape):
            wrong = right.copy()
            wrong[index] *= 1.001
            assert not matmul_passes(wrong, a, b)

    def test_nan_is_never_right_by_itself(self, dtype: str) -> None:
        a, b = matmul_inputs(3, 3, 3, dtype)
        output = a @ b
        output[1, 2] = np.nan
        verdict = check_output(output, MATMUL.reference([a, b]), MATMUL.rule)
        assert not verdict.check.passed
        assert verdict.check.error_over_bound is None

    def test_nan_and_infinity_stand_where_the_reference_has_them(self, dtype: str) -> None:
        a, b = matmul_inputs(4, 4, 4, dtype)
        a[1, 2], b[3, 0] = np.inf, np.nan
        with np.errstate(invalid="ignore"):
            right = a @ b
        assert matmul_passes(right, a, b)
        for index in [(1, 1), (0, 0)]:
            wrong = right.copy()
            wrong[index] = 1
            assert not matmul_passes(wrong, a, b)

    def test_where_finite_inputs_may_overflow_infinity_and_nan_pass(self, dtype: str) -> None:
        large = np.finfo(dtype).max
        a, b = np.full((1, 2), large, dtype), np.array([[2, 0.5], [-2, 0]], dtype)
        for overflowed in (np.inf, np.nan, 0):
            assert matmul_passes(np.array([[overflowed, large / 2]], dtype), a, b)
        assert not matmul_passes(np.array([[0, np.inf]], dtype), a, b)

    def test_beside_an_infinity_finite_inputs_may_overflow(self, dtype: str) -> None:
        """In one order of summation the sum of the finite terms is infinite when the infinity comes, in others not."""
        large = np.finfo(dtype).max
        a, b = np.array([[np.inf, -large], [np.inf, 1], [np.nan, large]], dtype), np.array([[1], [2]], dtype)
        for overflowed in (np.inf, np.nan):
            assert matmul_passes(np.array([[overflowed], [np.inf], [np.nan]], dtype), a, b)
        assert not matmul_passes(np.array([[np.inf], [np.nan], [np.nan]], dtype), a, b)
        assert not matmul_passes(np.array([[np.inf], [np.inf], [np.inf]], dtype), a, b)

    def test_an_empty_sum_is_zero(self, dtype: str) -> None:
        a, b = np.ones((2, 0), dtype), np.ones((0, 3), dtype)
        assert matmul_passes(np.zeros((2, 3), dtype), a, b)
        assert not matmul_passes(np.full((2, 3), 1e-30, dtype), a, b)

    def test_products_may_underflow_by_a_subnormal_each(self, dtype: str) -> None:
        tiny = np.sqrt(np.finfo(dtype).smallest_subnormal / 2).astype(dtype)
        a, b = np.full((1, 5), tiny, dtype), np.full((5, 1), tiny, dtype)
        assert matmul_passes(np.zeros((1, 1), dtype), a, b)


def test_tf32_would_be_seen() -> None:
    """A tensor core that rounds its inputs to 11 bits, as CUDA's TF32 does, is far outside the bound."""
    a, b = matmul_inputs(16, 16, 16, "float32")
    rounded = [((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32) for x in (a, b)]
    assert not matmul_passes(rounded[0] @ rounded[1], a, b)


def test_sums_of_more_products_than_float32_counts_have_a_bound() -> None:
    """The usual bound is undefined where (k+2) u reaches 1, at k of 2^24."""
    a, b = matmul_inputs(1, 1, 2**24 + 8, "float32")
    assert matmul_passes(a @ b, a, b)
    assert not matmul_passes(np.full((1, 1), 1e9, np.float32), a, b)


class Answering(type(MATMUL)):  # type: ignore[misc]  # the class of what a file holds
    """Matmul with an answer of somebody's own."""

    def __init__(self, answer: Reference) -> None:
        self.answer = answer

    def reference(self, inputs: Sequence[Array]) -> Reference:
        return self.answer


class TestReferences:
    """What every backend is judged by is looked at first."""

    @pytest.mark.parametrize("kernel", ["matmul", "vecadd"])
    @pytest.mark.parametrize("scale", [1.0, 1e-42, 1e19])
    def test_our_own_are_sound(self, kernel: str, scale: float) -> None:
        problem = registry.problem(kernel)
        sizes = (7, 5, 3)[: len(problem.dimensions)]
        draw = np.random.default_rng(1)
        inputs = [(draw.standard_normal(shape) * scale).astype(np.float32) for shape in problem.shapes(sizes)[:-1]]
        (reference,) = references_of(problem, inputs, sizes, inputs[0].dtype)
        assert reference.value.shape == problem.shapes(sizes)[-1]

    @pytest.mark.parametrize(
        ("value", "bound", "words"),
        [
            ([[1.0, 2.0]], [[1e-6, np.nan]], "the bound of its reference is negative or not finite"),
            ([[1.0, 2.0]], [[1e-6, -1.0]], "the bound of its reference is negative or not finite"),
            ([[1.0, 2.0]], [[1e-6, np.inf]], "the bound of its reference is negative or not finite"),
            (
                [[1.0, 2.0]],
                [1e-6, 1e-6],
                r"its reference has the shape \(2,\), but its output has \(1, 2\)",
            ),
            ([[1.0, 0.1]], [[0.0, 1e-12]], "its reference, rounded to float32, is not within its own bound: 1 of 2"),
            ([[1.0, 1e39]], [[1e-6, 1e20]], "its reference, rounded to float32, is not within its own bound: 1 of 2"),
        ],
    )
    def test_one_that_nothing_can_meet_is_refused(self, value: object, bound: object, words: str) -> None:
        problem = Answering(Reference(np.array(value), np.array(bound)))
        inputs: list[Array] = [np.ones((1, 1), np.float32), np.ones((1, 2), np.float32)]
        with pytest.raises(WrongRequest, match=words):
            references_of(problem, inputs, (1, 2, 1), inputs[0].dtype)

    def test_a_bound_is_a_number_where_the_result_may_overflow_too(self) -> None:
        problem = Answering(Reference(np.zeros((1, 2)), np.array([[0.0, np.nan]]), np.array([[False, True]])))
        inputs: list[Array] = [np.ones((1, 1), np.float32), np.ones((1, 2), np.float32)]
        with pytest.raises(WrongRequest, match="the bound of its reference is negative or not finite"):
            references_of(problem, inputs, (1, 2, 1), inputs[0].dtype)

    def test_what_may_overflow_and_what_is_not_finite_need_no_bound(self) -> None:
        value, bound = np.array([[1e39, np.nan]]), np.array([[np.inf, np.nan]])
        problem = Answering(Reference(value, bound, np.array([[True, False]])))
        inputs: list[Array] = [np.ones((1, 1), np.float32), np.ones((1, 2), np.float32)]
        assert references_of(problem, inputs, (1, 2, 1), inputs[0].dtype) == (problem.answer,)


def test_a_nan_that_signals_is_as_good_as_any_other() -> None:
    """NumPy warned of it, which ended the suite."""
    quiet, signalling = (np.array([bits], np.uint16).view("bfloat16") for bits in (0x7FC0, 0x7F81))
    assert same_bits(quiet, signalling).all()


def test_two_numbers_that_look_the_same_are_shown_with_more_digits() -> None:
    output, reference = np.array([1 + 2.0**-50]), Reference(np.array([1.0]), np.array([0.0]))
    reason = check_output(output, reference, "componentwise").reason
    assert reason is not None
    assert "1.0000000000000009 where 1 is right" in reason


@pytest.mark.parametrize(("dtype", "passes"), [("float32", False), ("float64", True)])
def test_beside_a_reference_that_overflows_a_number_is_right_in_its_own_format_alone(dtype: str, passes: bool) -> None:
    """In another order of summation the result may not overflow. In a narrower format it then does."""
    reference = Reference(np.array([np.inf]), np.array([1.0]), np.array([True]))
    assert check_output(np.array([1.0], dtype), reference, "componentwise").check.passed == passes
    assert check_output(np.array([np.nan], dtype), reference, "componentwise").check.passed
