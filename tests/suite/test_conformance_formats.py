"""The conformance suite in float16, bfloat16 and int8: what is few there, and what only length shows.

That wrong answers in these formats fail the kinds that are for them is tried for every kernel, with its own faults.
"""

from __future__ import annotations

import numpy as np
import pytest
from faults import answers

from py_backends import registry
from py_backends.conformance.formats import FLOATS, NARROW, limits
from py_backends.conformance.selection import all_kinds_of
from py_backends.conformance.trials import answered, chosen
from py_backends.number_formats import DTYPES


def test_what_saturates_at_32_bits_fails() -> None:
    matmul = registry.problem("matmul")
    (fault,) = (each for each in answers.wrong("matmul") if each.name == "sums stop at 32 bits")
    (kind,) = (each for each in all_kinds_of("matmul") if each.name == "saturation")
    for quick, long in ((True, {"1x2x131081"}), (False, {"1x2x131081", "1x1x131072", "1x1x262149"})):
        cases = answered("matmul", "int8", tuple(chosen(kind, "matmul", "int8", quick=quick))).values()
        wrong = (case.trial.name for case in cases if answers.reason(fault.made(), case, matmul))
        assert {each.partition(",")[0] for each in wrong} == long


@pytest.mark.parametrize("dtype", [*DTYPES, "int32"])
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
@pytest.mark.parametrize("kernel", ["vecadd", "matmul"])
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
