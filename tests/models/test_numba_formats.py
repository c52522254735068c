"""What texts in Numba widen and narrow with: every element, and what lies between two."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest
from commands import run_python
from conftest import nightly

from py_backends.backend import _numba
from py_backends.contract import Array

pytestmark = pytest.mark.numba_cpu
NARROW = pytest.mark.parametrize("dtype", [np.dtype("float16"), np.dtype("bfloat16")], ids=str)
CONVERTS = pytest.mark.parametrize("converts", [True, False], ids=["instructions", "integers"])


def every_element(dtype: np.dtype[Any]) -> Array:
    return np.arange(2**16).astype(np.uint16).view(dtype)


def compiled(converts: bool) -> tuple[Any, Any]:
    """Functions that widen and narrow arrays."""
    from numba import njit
    from numba.extending import intrinsic

    from py_backends.backend.formats import numba_cpu as formats

    if converts and not formats.CONVERTS:
        pytest.skip("this CPU has no instructions for float16")
    widen, narrow = intrinsic(formats.widen_by(converts)), intrinsic(formats.narrow_by(converts))

    @njit
    def widen_all(x: Any, wide: Any) -> None:
        for i in range(x.size):
            wide[i] = widen(x[i])

    @njit
    def narrow_all(wide: Any, x: Any) -> None:
        for i in range(x.size):
            x[i] = narrow(wide[i], x.dtype)

    return widen_all, narrow_all


@NARROW
@CONVERTS
def test_every_element_is_widened_to_what_it_is(dtype: np.dtype[Any], converts: bool) -> None:
    elements = every_element(dtype)
    wide = np.empty(elements.size, np.float32)
    compiled(converts)[0](_numba.seen(elements), wide)
    np.testing.assert_array_equal(wide, elements.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(wide), np.signbit(elements))


@NARROW
@CONVERTS
def test_numbers_are_narrowed_to_the_nearest_and_ties_to_the_even_one(dtype: np.dtype[Any], converts: bool) -> None:
    """Each element, the middle between it and the next, and the floats beside both: subnormals and infinity too."""
    elements = np.repeat(every_element(dtype).astype(np.float32).view(np.uint32), 2)
    digits = 16 if dtype.name == "bfloat16" else 13
    elements[1::2] += 1 << (digits - 1)
    around = np.concatenate([elements - np.uint32(1), elements, elements + np.uint32(1)]).view(np.float32)
    subnormal = np.arange(-4096, 4097, dtype=np.float32) * np.float32(2.0**-26)
    wide = np.concatenate([around, subnormal, np.nextafter(subnormal, np.float32(1))])
    narrowed = np.empty(wide.size, dtype)
    compiled(converts)[1](wide, _numba.seen(narrowed))
    with np.errstate(all="ignore"):
        right = wide.astype(dtype)
    is_nan = np.isnan(wide)
    np.testing.assert_array_equal(np.isnan(narrowed), is_nan)
    np.testing.assert_array_equal(narrowed.view(np.uint16)[~is_nan], right.view(np.uint16)[~is_nan])


OF_ALL = """
import numpy as np
import py_backends
from py_backends.backend.formats import numba_cpu

elements = np.tile(np.arange(2**16).astype(np.uint16).view("float16"), 2)
for variant in ("lecture", "tuned"):
    sums = py_backends.vecadd(elements, elements, backend="numba_cpu", variant=variant)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(sums, elements + elements)
print(numba_cpu.CONVERTS)
"""


@pytest.mark.slow
@pytest.mark.parametrize("variable", [nightly("NUMBA_CPU_NAME=generic"), "NUMBA_ENABLE_AVX=0"])
def test_a_cpu_without_instructions_for_float16_has_it_too(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where LLVM would call functions of a library that is not there, and end the process."""
    monkeypatch.setenv(*variable.split("="))
    run = run_python("-c", OF_ALL)
    assert run.returncode == 0, run.stderr
    if platform.machine() == "x86_64":
        assert run.stdout == "False\n"


SIMULATED = """
import numpy as np
import ml_dtypes
from py_backends.backend import _numba
from py_backends.backend.formats import numba_cuda as formats

for name in ("float16", "bfloat16"):
    x = np.array([0.1, -0.0, 3e38, np.nan, 1e-40, 257], np.float32)
    narrow = x.astype(name)
    seen = _numba.seen(narrow)
    assert [formats.narrow(each, seen.dtype) for each in x] == list(seen)
    wide = np.array([formats.widen(each) for each in seen])
    assert wide.dtype == np.float32
    np.testing.assert_array_equal(wide, narrow.astype(np.float32))
assert formats.widen(np.int8(-128)).dtype == np.int32
assert formats.widen(np.float64(0.1)).dtype == formats.narrow(np.float64(0.1), np.dtype(np.float64)).dtype == np.float64
"""


@pytest.mark.numba_cuda
def test_the_simulator_widens_and_narrows_numbers_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    run = run_python("-W", "ignore", "-c", SIMULATED)
    assert run.returncode == 0, run.stderr
