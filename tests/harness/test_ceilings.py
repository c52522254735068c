"""What the ceilings are measured with computes what it says; how fast it is, no test asks."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from py_backends import _compiled
from py_backends.errors import BackendUnavailable
from py_backends.workers import ceilings

DTYPES = [np.dtype("float32"), np.dtype("float64")]


@pytest.fixture(autouse=True)
def _compiled_here() -> None:
    try:
        _compiled.load("ceilings")
    except BackendUnavailable as missing:
        pytest.skip(missing.reason)


def kernels(name):
    here = ceilings.instruction_sets()
    return [
        each for each in _compiled.load("ceilings").kernels() if each.kernel == name and each.instruction_set in here
    ]


@pytest.mark.parametrize("name", ["vecadd_streamed", "vecadd_stored"])
@pytest.mark.parametrize("elements", [0, 1, 15, 16, 17, 63, 64, 65, 1000, 100_003])
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("repetitions", [1, 3])
def test_additions_are_right_at_any_length_and_alignment(
    name: str, elements: int, offset: int, repetitions: int
) -> None:
    for kernel in kernels(name):
        a, b = np.random.default_rng(1).standard_normal((2, elements + offset)).astype(kernel.dtype)
        c = np.full(elements + offset + 1, np.nan, kernel.dtype)
        kernel([a[offset:], b[offset:], c[offset:-1]], [elements, repetitions], 2)
        assert np.array_equal(c[offset:-1], a[offset:] + b[offset:])
        assert np.isnan(c[-1])


@pytest.mark.parametrize("name", ["vecadd_streamed", "vecadd_stored"])
def test_no_repetition_adds_nothing(name: str) -> None:
    for kernel in kernels(name):
        c = np.full(100, np.nan, kernel.dtype)
        kernel([np.ones_like(c), np.ones_like(c), c], [100, 0], 2)
        assert np.isnan(c).all()


@pytest.mark.parametrize("elements", [0, 1, 127, 128, 129, 100_003])
@pytest.mark.parametrize("threads", [1, 3])
def test_reading_reads_every_element_in_every_repetition(elements: int, threads: int) -> None:
    for kernel in kernels("read"):
        a = np.random.default_rng(1).integers(0, 9, elements).astype(kernel.dtype)
        sums = np.full(threads, np.nan, kernel.dtype)
        kernel([a, sums], [elements, 3], threads)
        assert sums.sum() == 3 * a.sum()


@pytest.mark.parametrize("threads", [1, 3])
def test_every_thread_multiplies_and_adds(threads: int) -> None:
    for kernel in kernels("multiply_add"):
        sums = np.full(threads, -1, kernel.result_dtype)
        kernel([np.array([0.5, 1], kernel.dtype), sums], [768 * 100], threads)
        if kernel.dtype in ("float32", "float64", "float16"):
            assert np.allclose(sums, 12 * 2), "12 chains, each of which tends to 1 / (1 - 0.5)"
        elif kernel.dtype == "int8":
            assert (sums == sum(range(12))).all(), "the factor 0.5 is 0 there: the chains stay what they were"
        else:
            assert (sums >= 12 * 2).all(), "or grows without end where one instruction adds two products to a sum"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_instruction_set_has_a_peak(dtype: np.dtype) -> None:
    for instruction_set in ceilings.instruction_sets():
        multiply_adds = ceilings.MultiplyAdds(dtype, 1, instruction_set)
        assert multiply_adds.flops_per_second(seconds=0.001) > 0
        assert multiply_adds.sample() > 0


def test_an_instruction_set_that_is_named_is_measured_in_a_new_process() -> None:
    """It has to ask the system for AMX, as another process has done that found it there."""
    best = ceilings.instruction_sets("bfloat16")[0]
    program = f"""
import numpy, ml_dtypes
from py_backends.workers.ceilings import MultiplyAdds
print(MultiplyAdds(numpy.dtype("bfloat16"), 2, {best!r}).sample() > 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize("kind", [*ceilings._KERNELS])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("working_set", [0, 24_000, 5 * 2**24])
def test_every_working_set_has_a_bandwidth(kind: str, dtype: np.dtype, working_set: int) -> None:
    bandwidth = ceilings.Bandwidth(kind, dtype, 2, working_set)
    assert bandwidth.bytes == pytest.approx(working_set, abs=3 * dtype.itemsize)
    assert bandwidth.bytes_per_second(2) > 0
    assert bandwidth.sample() > 0


def test_vectors_of_a_block_lie_apart() -> None:
    block = ceilings.Block(3 * 10_000)
    for dtype in DTYPES:
        a, b, c = block.vectors(3, dtype, 10_000 // dtype.itemsize)
        assert not np.shares_memory(a, b)
        assert not np.shares_memory(a, c)
        assert (a == a[0]).all()
        assert (b == a[0]).all()
        assert all(vector.ctypes.data % 64 == 0 for vector in (a, b, c))
        assert np.isfinite(a[0] + a[0])
    (a,) = block.vectors(1, np.dtype("float32"), 7500)
    assert a.size == 7500


@pytest.mark.parametrize("elements", [1, 16, 2**22 + 5, 2**24 + 1])
def test_parts_of_a_working_set_follow_one_another(elements: int) -> None:
    parts = ceilings._windows(elements, 12)
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == elements
    assert len(parts) == max(1, elements * 12 // 2**24)


def test_a_sample_of_a_vast_working_set_goes_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "_REVISITED", 2**20)
    monkeypatch.setattr(ceilings, "_PART_BYTES", 2**17)
    bandwidth = ceilings.Bandwidth(ceilings.STORED, np.dtype("float32"), 2, 12 * 2**17)
    taken = []
    monkeypatch.setattr(bandwidth, "_run", lambda window, _: taken.append(window) or 1.0)
    for _ in range(3):
        bandwidth.sample()
    assert taken == (bandwidth._windows * 2)[:24]


def test_a_run_that_was_disturbed_does_not_shorten_those_that_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else they would be so short that only starting threads is seen."""
    multiply_adds = ceilings.MultiplyAdds(np.dtype("float32"), 1)
    counts: list[int] = []
    seconds = iter([1.0, 1e9, 1.0])
    monkeypatch.setattr(multiply_adds, "_per_second", 98_304e3)
    monkeypatch.setattr(multiply_adds, "_run", lambda count: counts.append(count) or next(seconds))
    rates = [multiply_adds.flops_per_second(seconds=1.0) for _ in range(3)]
    assert counts == [98_304_000] * 3
    assert rates[1] < 1 < rates[0] == rates[2]
