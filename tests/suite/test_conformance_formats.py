"""The conformance suite in float16, bfloat16 and int8: wrong kernels fail the kinds that are for them, right ones none.

Kernels are called here, and what they return is judged as the suite does; how it runs others, other tests tell.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from narrow_faults import FAILS, HOLDS, Kernel, M, V, saturates_at_32_bits

from py_backends import registry
from py_backends.conformance.formats import FLOATS, NARROW, limits
from py_backends.conformance.running import verdict
from py_backends.conformance.selection import all_kinds_of
from py_backends.conformance.trials import answered, chosen
from py_backends.number_formats import FORMATS


def wrong(computed: Kernel, kernel: str, kind: str, dtype: str, *, quick: bool = True) -> Iterator[str]:
    """What is wrong with a kernel in the cases of a kind, which must be some."""
    (of_name,) = (each for each in all_kinds_of(kernel) if each.name == kind)
    trials = tuple(chosen(of_name, kernel, dtype, quick=quick))
    assert trials
    problem = registry.problem(kernel)
    for case in answered(kernel, dtype, trials).values():
        with np.errstate(all="ignore"):
            result = computed(*case.inputs)
        assert result.dtype == problem.result_dtype(np.dtype(dtype))
        if reason := verdict(result, case, problem.rule):
            yield f"{case.trial.name}: {reason}"


@pytest.mark.parametrize(
    ("computed", "kernel", "dtype", "kind"),
    [
        pytest.param(computed, kernel, dtype, kind, id=f"{computed.__name__}-{dtype}-{kind}")
        for computed, kernel, dtypes, kinds in FAILS
        for dtype in dtypes
        for kind in sorted(kinds)
    ],
)
def test_a_wrong_kernel_fails(computed: Kernel, kernel: str, dtype: str, kind: str) -> None:
    assert next(wrong(computed, kernel, kind, dtype), None)


@pytest.mark.parametrize(
    ("computed", "kernel", "dtype"),
    [
        pytest.param(computed, kernel, dtype, id=f"{computed.__name__}-{dtype}")
        for computed, kernel, dtypes in HOLDS
        for dtype in dtypes
    ],
)
def test_a_right_kernel_holds(computed: Kernel, kernel: str, dtype: str) -> None:
    """Whatever its order of summation, and where sums may be cut off and subnormal numbers lost."""
    kinds = [kind for kind in all_kinds_of(kernel) if chosen(kind, kernel, dtype, quick=True) and not kind.again]
    assert len(kinds) >= 3
    for kind in kinds:
        assert next(wrong(computed, kernel, kind.name, dtype), None) is None, kind.name


def test_what_saturates_at_32_bits_fails() -> None:
    for quick, long in ((True, {"1x2x131081"}), (False, {"1x2x131081", "1x1x131072", "1x1x262149"})):
        said = list(wrong(saturates_at_32_bits, M, "saturation", "int8", quick=quick))
        assert {each.partition(",")[0] for each in said} == long


@pytest.mark.parametrize("dtype", FORMATS)
def test_limits_are_those_of_the_format(dtype: str) -> None:
    of, format_ = limits(np.dtype(dtype)), np.dtype(dtype).type
    with np.errstate(over="ignore"):
        assert format_(of.least) > 0
        assert float(format_(2**of.digits - 1)) == 2**of.digits - 1
        assert float(format_(of.largest)) == of.largest
        if dtype in FLOATS:
            assert float(format_(2**of.digits + 1)) == 2**of.digits
            assert format_(of.least / 2) == 0
            assert not np.isfinite(format_((1 + of.step) * of.largest))
            assert float(format_(1 + of.step)) == 1 + of.step > float(format_(1 + of.step / 2))


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("kernel", [V, M])
def test_a_quick_run_tries_few_cases_in_a_narrow_format(kernel: str, dtype: str) -> None:
    quick, thorough = (
        {(kind.name, case.name) for kind in all_kinds_of(kernel) for case in chosen(kind, kernel, dtype, quick=quick)}
        for quick in (True, False)
    )
    assert quick <= thorough
    if dtype in registry.problem(kernel).dtypes:
        assert 40 < len(quick) < 300 < len(thorough)
    else:
        assert not thorough
