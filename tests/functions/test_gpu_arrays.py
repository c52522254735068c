"""Arrays on GPUs. The GPUs' libraries are stand-ins: there may be no GPU at hand."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from far_backend import FarArray
from given_arrays import CUDA, Tensor, drawn

from py_backends.backend import _nvidia_driver, numba_cuda
from py_backends.backend import cuda as cuda_backend
from py_backends.backend._cupy import Memory
from py_backends.contract import Array
from py_backends.errors import KernelFault
from py_backends.functions import foreign_arrays

FLOAT32 = np.dtype(np.float32)


class CupyArray:
    """As much of `cupy.ndarray` as is looked at. Its memory is the host's."""

    def __init__(self, elements: Array, gpu: int = 0) -> None:
        self.elements, self.device = elements, SimpleNamespace(id=gpu)
        self.data = SimpleNamespace(ptr=elements.ctypes.data)
        self.shape, self.dtype, self.size, self.flags = elements.shape, elements.dtype, elements.size, elements.flags

    def reshape(self, shape: int) -> CupyArray:
        return CupyArray(self.elements.reshape(shape), self.device.id)


class OnGpu:
    """An array of another library on a GPU, by NVIDIA's protocol alone, as numba-cuda's."""

    def __init__(self, elements: Array, *, read_only: bool = False) -> None:
        self.elements, self.read_only = elements, read_only
        self.shape, self.dtype = elements.shape, elements.dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.elements.shape,
            "typestr": self.elements.dtype.str,
            "strides": None if self.elements.flags.c_contiguous else self.elements.strides,
            "data": (self.elements.ctypes.data if self.elements.size else 0, self.read_only),
            "version": 3,
            "stream": 7,
        }


class FakeCupy:
    """CuPy's ways to take an array over, and what they were asked for."""

    ndarray = CupyArray

    def __init__(self) -> None:
        self.taken: list[str] = []

    def from_dlpack(self, array: Any) -> CupyArray:
        self.taken.append("DLPack")
        return CupyArray(array.array, 0)

    def asarray(self, array: Any) -> CupyArray:
        self.taken.append("__cuda_array_interface__")
        return CupyArray(array.elements)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> CupyArray:
        return CupyArray(np.empty(shape, dtype))


@pytest.fixture
def cupy_gpu() -> Any:
    gpu: Any = object.__new__(cuda_backend.Gpu)
    gpu._cupy = FakeCupy()
    gpu._gpu = Number(0)
    return gpu


class Number(nullcontext[None]):
    """A GPU, which is entered."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.id = number


@pytest.mark.parametrize(("capability", "dtype"), [("90", "float64"), ("80", "float64"), ("75", "float16")])
def test_what_tensor_cores_compute_has_no_peak(cupy_gpu: Any, capability: str, dtype: str) -> None:
    """Else float64 products of cuBLAS, at twice the rate of the units that are measured, seem impossible."""
    cupy_gpu._gpu.compute_capability = capability
    assert cupy_gpu.peak(np.dtype(dtype)) is None


@pytest.mark.parametrize(
    ("version", "capability", "extra"),
    [((13, 0), (7, 0), "cuda12"), ((13, 0), (7, 5), "cuda13"), ((12, 4), (9, 0), "cuda12"), (None, None, "cuda13")],
)
def test_the_extra_fits_the_driver_and_its_gpus(
    version: tuple[int, int] | None, capability: tuple[int, int] | None, extra: str
) -> None:
    """A driver for CUDA 13 runs V100, too, for which CUDA 13 compiles nothing."""
    assert _nvidia_driver.Driver(version, ("V100",), capability).extra == extra


def test_an_illegal_access_is_a_fault_of_the_kernel() -> None:
    numbas = pytest.importorskip("numba.cuda", reason="no Numba for GPUs (to change that: pip install numba-cuda)")
    gpu: Any = object.__new__(numba_cuda.Gpu)
    refused = numbas.cudadrv.driver.CudaAPIError(700, "illegal address")

    def synchronize() -> None:
        raise refused

    gpu._cuda, gpu._context, gpu._stream = numbas, nullcontext(), SimpleNamespace(synchronize=synchronize)
    with pytest.raises(KernelFault, match="illegal address"):
        gpu.wait()


class TestOfCupy:
    @pytest.mark.parametrize(
        ("make", "way"),
        [
            (CupyArray, []),
            (lambda elements: Tensor(elements, CUDA), ["DLPack"]),
            (lambda elements: Tensor(elements, foreign_arrays.Memory.CUDA_MANAGED), ["DLPack"]),
            (OnGpu, ["__cuda_array_interface__"]),
        ],
        ids=["CuPy's", "DLPack", "managed", "NVIDIA's protocol"],
    )
    def test_arrays_on_the_gpu_are_taken_as_they_are(self, cupy_gpu: Any, make: Any, way: list[str]) -> None:
        elements = drawn(5, 7)
        adopted = cupy_gpu.adopt(make(elements))
        assert cupy_gpu._cupy.taken == way
        assert (adopted.shape, adopted.dtype, adopted.writable) == ((5, 7), FLOAT32, True)
        assert adopted.address == adopted.buffer.array.data.ptr == elements.ctypes.data
        assert adopted.buffer.array.shape == (35,), "launches take flat buffers"
        assert isinstance(adopted.buffer, Memory)
        cupy_gpu.release(adopted.buffer)
        assert adopted.buffer.array is None

    def test_arrays_elsewhere_are_left_to_others(self, cupy_gpu: Any) -> None:
        assert [cupy_gpu.adopt(each) for each in (Tensor(drawn(4)), FarArray(drawn(4)), [1.0], None)] == [None] * 4

    def test_arrays_of_another_gpu_are_refused(self, cupy_gpu: Any) -> None:
        with pytest.raises(TypeError, match="it lies on GPU 1, and this is GPU 0; copy it there first"):
            cupy_gpu.adopt(CupyArray(drawn(4), gpu=1))
        cupy_gpu._cupy.asarray = lambda array: CupyArray(array.elements.copy())  # as CuPy may, from GPU to GPU
        with pytest.raises(TypeError, match="it lies on another GPU"):
            cupy_gpu.adopt(OnGpu(drawn(4)))

    @pytest.mark.parametrize("make", [CupyArray, OnGpu])
    def test_strided_and_empty_ones(self, cupy_gpu: Any, make: Any) -> None:
        with pytest.raises(TypeError, match="not C-contiguous"):
            cupy_gpu.adopt(make(drawn(5, 7).T))
        empty = cupy_gpu.adopt(make(np.zeros((0, 3), FLOAT32)))
        assert (empty.buffer, empty.shape, empty.dtype) == (None, (0, 3), FLOAT32)

    def test_read_only_ones_are_no_outputs(self, cupy_gpu: Any) -> None:
        assert cupy_gpu.adopt(OnGpu(drawn(4), read_only=True)).writable is False

    def test_new_ones(self, cupy_gpu: Any) -> None:
        made = cupy_gpu.new((3, 4), FLOAT32)
        assert (type(made), made.shape, made.dtype) == (CupyArray, (3, 4), FLOAT32)
        assert cupy_gpu.adopt(made).shape == (3, 4)


class NumbaArray(OnGpu):
    """As much of a device array of Numba as is looked at."""

    @property
    def size(self) -> int:
        return self.elements.size

    def is_c_contiguous(self) -> bool:
        return bool(self.elements.flags.c_contiguous)

    def reshape(self, *shape: int) -> NumbaArray:
        return NumbaArray(self.elements.reshape(shape))

    def view(self, dtype: Any) -> NumbaArray:
        return NumbaArray(self.elements.view(dtype))


@pytest.fixture
def numba_gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    gpu: Any = object.__new__(numba_cuda.Gpu)
    gpu._ordinal, gpu._context, gpu._stream = 0, nullcontext(), object()
    gpu._cuda = SimpleNamespace(
        as_cuda_array=lambda array: NumbaArray(array.elements),
        device_array=lambda shape, dtype: NumbaArray(np.empty(shape, dtype)),
    )
    monkeypatch.setattr(numba_cuda, "_ordinal_of", lambda _: 0)
    return gpu


class TestOfNumba:
    @pytest.mark.parametrize("make", [NumbaArray, OnGpu])
    def test_arrays_on_the_gpu_are_taken_as_they_are(self, numba_gpu: Any, make: Any) -> None:
        elements = drawn(5, 7)
        adopted = numba_gpu.adopt(make(elements))
        assert (adopted.shape, adopted.dtype, adopted.writable) == ((5, 7), FLOAT32, True)
        assert adopted.address == adopted.buffer.elements.ctypes.data == elements.ctypes.data
        assert adopted.buffer.shape == (35,), "kernels are compiled for flat arrays"

    @pytest.mark.parametrize(("dtype", "seen"), [("float16", "int16"), ("bfloat16", "uint16"), ("int8", "int8")])
    def test_formats_that_numba_does_not_know_are_seen_as_bits(self, numba_gpu: Any, dtype: str, seen: str) -> None:
        """By the dtype of the array: the interface has no name for bfloat16."""
        numba_gpu._cuda.as_cuda_array = lambda array: NumbaArray(array.elements.view(array.dtype.str))
        elements = drawn(5, 7).astype(dtype)
        adopted = numba_gpu.adopt(NumbaArray(elements))
        assert (adopted.shape, adopted.dtype, adopted.buffer.dtype) == ((5, 7), elements.dtype, np.dtype(seen))
        assert adopted.buffer.elements.ctypes.data == elements.ctypes.data

    def test_arrays_elsewhere_are_left_to_others(self, numba_gpu: Any) -> None:
        assert [numba_gpu.adopt(each) for each in (Tensor(drawn(4), CUDA), FarArray(drawn(4)), [1.0])] == [None] * 3

    def test_arrays_of_another_gpu_are_refused(self, numba_gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(numba_cuda, "_ordinal_of", lambda _: 1)
        with pytest.raises(TypeError, match="it lies on GPU 1, and this is GPU 0"):
            numba_gpu.adopt(OnGpu(drawn(4)))

    def test_strided_and_empty_ones(self, numba_gpu: Any) -> None:
        with pytest.raises(TypeError, match="not C-contiguous"):
            numba_gpu.adopt(OnGpu(drawn(5, 7).T))
        empty = numba_gpu.adopt(OnGpu(np.zeros((0, 3), FLOAT32)))
        assert (empty.buffer, empty.shape) == (None, (0, 3))

    def test_read_only_ones_are_no_outputs(self, numba_gpu: Any) -> None:
        assert numba_gpu.adopt(OnGpu(drawn(4), read_only=True)).writable is False

    def test_new_ones(self, numba_gpu: Any) -> None:
        made = numba_gpu.new((3, 4), FLOAT32)
        assert (made.shape, made.dtype, numba_gpu.adopt(made).shape) == ((3, 4), FLOAT32, (3, 4))
