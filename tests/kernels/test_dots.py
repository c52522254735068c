"""By which instruction avx multiplies bfloat16: that for pairs is taken where it is faster, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import targets_of

import py_backends as pb

pytestmark = pytest.mark.avx


def takes_pairs(target: str) -> bool:
    """Whether the system describes a CPU that is said to multiply pairs faster."""
    cpu = Path("/proc/cpuinfo")
    told = cpu.read_text().partition("\n\n")[0].split() if cpu.is_file() else []
    return target == "avx512" and {"AuthenticAMD", "avx512_bf16"} <= set(told)


@pytest.mark.parametrize("target", ["avx512", "avx2", "sse"])
@pytest.mark.parametrize("k", [1, 2, 7, 512])
def test_pairs_of_bfloat16_are_multiplied_where_that_is_faster(target: str, k: int) -> None:
    """The instruction takes subnormal numbers for zeros, which floats do not: so its results tell."""
    if not next(each for each in targets_of("avx") if each.name == target).available:
        pytest.skip(f"this CPU has no {target}")
    bfloat16 = np.dtype("bfloat16")
    a, b = np.full((20, k), 2.0**-130, bfloat16), np.full((k, 20), 2.0**120, bfloat16)
    c = pb.matmul(a, b, backend="avx", target=target)
    assert (c == (0 if takes_pairs(target) else k * 2.0**-10)).all()


@pytest.mark.parametrize("k", range(1, 9))
def test_no_pair_is_filled_up_with_what_is_not_zero(k: int) -> None:
    """Every element of a or b is infinite: times anything but their own they would be NaN, or infinite elsewhere."""
    bfloat16 = np.dtype("bfloat16")
    for a_value, b_value in ((np.inf, 1), (1, np.inf), (np.inf, np.inf)):
        a, b = np.full((9, k), a_value, bfloat16), np.full((k, 50), b_value, bfloat16)
        assert (pb.matmul(a, b, backend="avx") == np.inf).all()
