"""Products in narrow formats for kernels that multiply tiles: their inputs, and whether their results are right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import pytest

from py_backends import registry
from py_backends.contract import Array
from py_backends.results.check import check_output

FORMATS = "bfloat16", "float16", "int8"


@dataclass(frozen=True)
class Case:
    """A product, the threads that compute it, and how many elements lie before the first of each array."""

    a: Array
    b: Array
    threads: int = 1
    offset: int = 0

    @property
    def request(self) -> bytes:
        (m, k), n = self.a.shape, self.b.shape[1]
        line = f"{self.a.dtype.name} {m} {n} {k} {self.threads} {self.offset}\n"
        return line.encode() + self.a.tobytes() + self.b.tobytes()


def drawn(shape: tuple[int, int], dtype: str, seed: int = 3) -> Array:
    generator = np.random.default_rng(seed)
    if dtype == "int8":
        return generator.integers(-128, 128, shape, np.int8)
    return generator.standard_normal(shape).astype(dtype)


def product(m: int, n: int, k: int, dtype: str, threads: int = 1, offset: int = 0) -> Case:
    return Case(drawn((m, k), dtype, 3), drawn((k, n), dtype, 4), threads, offset)


def wrong(cases: Sequence[Case], results: Sequence[Array]) -> dict[str, str]:
    """By shape and dtype what is not within the kernel's bound."""
    problem = registry.problem("matmul")
    verdicts = {
        f"{case.a.shape} {case.b.shape} {case.a.dtype}": check_output(
            result, problem.reference([case.a, case.b]), problem.rule
        ).reason
        for case, result in zip(cases, results, strict=True)
    }
    return {name: reason for name, reason in verdicts.items() if reason}


def assert_right(cases: Sequence[Case], results: Sequence[Array]) -> None:
    found = wrong(cases, results)
    assert found == {}, found


SHAPES = [
    *((0, 5, 3), (5, 0, 3), (0, 0, 0), (5, 3, 0), (1, 1, 1), (1, 1, 200), (1, 70, 9), (70, 1, 9), (15, 16, 17)),
    *((16, 16, 32), (17, 31, 33), (31, 33, 63), (32, 32, 64), (33, 65, 129), (64, 64, 65), (65, 95, 31)),
]


def spread(shape: tuple[int, int], dtype: str, seed: int) -> Array:
    """Numbers of very different size, so that the order of sums shows."""
    generator = np.random.default_rng(seed)
    exponents = generator.integers(-14, 12, shape)
    return (generator.standard_normal(shape) * 2.0**exponents).astype(dtype)


Numbers = list[list[Fraction]]
"""A matrix without any rounding."""


def exact(array: Array) -> Numbers:
    return [[Fraction(float(x)) for x in row] for row in array]


def halves(array: Array) -> tuple[Numbers, Numbers]:
    """What a number has in its first eight digits, and the rest."""
    whole = array.astype(np.float32)
    high = (whole.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return exact(high), exact(whole - high)


def instruction(a: Numbers, b: Numbers, c: Numbers | None = None) -> Numbers:
    """c + a b as TDPBF16PS computes it."""
    return [
        [rounded((c[i][j] if c else 0) + chains(row, [of_p[j] for of_p in b])) for j in range(len(b[0]))]
        for i, row in enumerate(a)
    ]


def chains(x: Sequence[Fraction], y: Sequence[Fraction]) -> Fraction:
    """Products with even and odd places are summed apart, each rounded once with what it is added to."""
    sums = [Fraction(0), Fraction(0)]
    for p, (left, right) in enumerate(zip(x, y, strict=True)):
        sums[p % 2] = rounded(sums[p % 2] + left * right)
    return rounded(sums[0] + sums[1])


def rounded(x: Fraction) -> Fraction:
    """The nearest float32, of two the even one; zero in place of a subnormal one."""
    if x == 0:
        return x
    exponent = x.numerator.bit_length() - x.denominator.bit_length()  # or one too many
    exponent -= abs(x) < Fraction(2) ** exponent
    digit = Fraction(2) ** (exponent - 23)
    nearest = round(x / digit) * digit
    return nearest if abs(nearest) >= Fraction(2) ** -126 else Fraction(0)


def rounded_array(x: Numbers) -> Array:
    return np.array([[float(each) for each in row] for row in x], np.float32)


class Program(Protocol):
    """Something that computes products."""

    def results(self, *cases: Case) -> list[Array]: ...


class OfProducts:
    """Tests of a fixture `program`. Test modules derive from it."""

    @pytest.mark.parametrize("dtype", FORMATS)
    def test_right_at_every_depth(self, program: Program, dtype: str) -> None:
        """Through every part of a step of either format, and one step more."""
        cases = [product(5 + k % 31, 3 + k % 37, k, dtype) for k in range(98)]
        assert_right(cases, program.results(*cases))

    @pytest.mark.parametrize("threads", [1, 3])
    @pytest.mark.parametrize("dtype", FORMATS)
    def test_right_at_every_edge(self, program: Program, dtype: str, threads: int) -> None:
        cases = [product(*sizes, dtype, threads, offset) for sizes in SHAPES for offset in (0, 1)]
        assert_right(cases, program.results(*cases))

    @pytest.mark.nightly
    @pytest.mark.parametrize("threads", [1, 2, 3, 4])
    @pytest.mark.parametrize("dtype", FORMATS)
    def test_right_in_blocks_that_threads_share(self, program: Program, dtype: str, threads: int) -> None:
        """Passes of two depths, and more columns than a block of b has."""
        cases = [product(70, 70, 1100, dtype, threads), product(70, 260, 930, dtype, threads)]
        assert_right(cases, program.results(*cases))

    @pytest.mark.nightly
    def test_threads_change_no_bit(self, program: Program) -> None:
        cases = [product(97, 161, 1030, dtype, threads) for dtype in FORMATS for threads in (1, 2, 4)]
        results = program.results(*cases)
        for at in range(0, len(cases), 3):
            assert len({result.tobytes() for result in results[at : at + 3]}) == 1

    @pytest.mark.parametrize("k", [1, 2, 3, 16, 31, 32])
    def test_every_bit_of_bfloat16_is_that_of_one_instruction(self, program: Program, k: int) -> None:
        case = Case(spread((17, k), "bfloat16", 5), spread((k, 19), "bfloat16", 6))
        expected = instruction(exact(case.a), exact(case.b))
        np.testing.assert_array_equal(program.results(case)[0], rounded_array(expected))

    @pytest.mark.parametrize("k", [1, 2, 31, 32])
    def test_every_bit_of_float16_is_that_of_four_instructions(self, program: Program, k: int) -> None:
        """Every number is two: the digits that bfloat16 has room for, and the others."""
        case = Case(spread((17, k), "float16", 5), spread((k, 19), "float16", 6))
        (high_a, low_a), (high_b, low_b) = halves(case.a), halves(case.b)
        expected = instruction(high_a, high_b)
        for a, b in (high_a, low_b), (low_a, low_b), (low_a, high_b):
            expected = instruction(a, b, expected)
        np.testing.assert_array_equal(program.results(case)[0], rounded_array(expected))

    def test_sums_of_int8_wrap_around(self, program: Program) -> None:
        """At 2^31: so deep that it takes 2^17 products of -128 with itself."""
        k = 2**17 + 3
        case = Case(np.full((2, k), -128, np.int8), np.full((k, 3), -128, np.int8))
        np.testing.assert_array_equal(program.results(case)[0], np.full((2, 3), 128 * 128 * k - 2**32, np.int32))

    def test_subnormal_numbers_of_float16_count(self, program: Program) -> None:
        a = np.float16([[2.0**-24, 3 * 2.0**-20, 2.0**-15]] * 5)
        b = np.float16([[2.0**-24], [2.0**-24], [2.0**-14]] * 1)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_array_equal(program.results(Case(a, b))[0], expected.astype(np.float32))

    def test_subnormal_numbers_of_bfloat16_are_within_the_bound(self, program: Program) -> None:
        a, b = spread((33, 40), "bfloat16", 7), spread((40, 35), "bfloat16", 8)
        a[:, ::3], b[::5] = np.float32(1e-39), np.float32(-3e-40)
        case = Case(a, b)
        assert_right([case], program.results(case))

    @pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
    @pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
    def test_what_is_not_finite_stays_in_its_row_and_column(self, program: Program, dtype: str, value: float) -> None:
        """Also where another factor has no second part, is subnormal, zero, or was added to fill up."""
        cases = []
        for k, at in ((1, 0), (33, 32), (70, 5)):
            for where in "ab":
                a, b = drawn((40, k), dtype), drawn((k, 70), dtype, 4)
                b[at, :4] = np.array([0, 1, 2.0**-130 if dtype == "bfloat16" else 2.0**-24, -0.0], dtype)
                a[:4, at] = np.array([0, 1, 2.0**-130 if dtype == "bfloat16" else 2.0**-24, -0.0], dtype)
                if where == "a":
                    a[21, at] = value
                else:
                    b[at, 66] = value
                cases.append(Case(a, b, threads=2))
        results = program.results(*cases)
        assert_right(cases, results)
        assert all(np.isfinite(result).sum() >= result.size - 70 for result in results)

    def test_infinities_of_both_signs_make_nan(self, program: Program) -> None:
        a, b = np.ones((3, 40), np.float16), np.ones((40, 5), np.float16)
        a[1, 3], a[1, 39] = math.inf, -math.inf
        assert np.isnan(program.results(Case(a, b))[0][1]).all()

    def test_what_overflows_is_infinite(self, program: Program) -> None:
        a, b = np.ones((3, 40), "bfloat16") * 2.0**100, np.ones((40, 5), "bfloat16") * 2.0**100
        case = Case(a.astype("bfloat16"), b.astype("bfloat16"))
        assert (program.results(case)[0] == math.inf).all()
