"""Functions of cuBLAS for which CuPy has no wrapper: products wider than their inputs, and transposing a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import cupy

_CODES = {"float32": 0, "float16": 2, "int8": 3, "int32": 10, "bfloat16": 14}
"""The library's codes of number formats: cudaDataType in CUDA's library_types.h."""
_WORD = 4
"""For int8, addresses and sizes of rows must be multiples of this. The library takes only some other sizes."""


def gemm_ex(a: cupy.ndarray, b: cupy.ndarray, out: cupy.ndarray) -> None:
    """Write a b to `out`. No array is empty, and all are stored by rows.

    Results of 16-bit formats are float32, those of int8 are int32. Runs on the calling thread's current device and
    stream.
    """
    if a.dtype != np.int8:
        _call(a, b, out)
        return
    padded = _padded(out)
    _call(_padded(a), _padded(b), padded)
    if padded is not out:
        out[...] = padded[: out.shape[0], : out.shape[1]]


def transpose_into(a: cupy.ndarray, out: cupy.ndarray) -> None:
    """Write the transpose of a to `out`. Neither is empty, and both are stored by rows, in float32 or float64.

    The library stores by columns. So it sees a^T, which is to be transposed, and writes what it sees of `out`. It adds
    0 times a second matrix, which may be `out` itself. Runs on the calling thread's current device and stream.
    """
    from cupy.cuda import cublas, get_cublas_handle

    n, m = a.shape
    one, zero = np.ones(1, a.dtype), np.zeros(1, a.dtype)
    add = cublas.sgeam if a.dtype == np.float32 else cublas.dgeam
    # fmt: off
    add(
        get_cublas_handle(), cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N, n, m,
        one.ctypes.data, a.data.ptr, m, zero.ctypes.data, out.data.ptr, n, out.data.ptr, n,
    )
    # fmt: on


def _call(a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray) -> None:
    """The library stores by columns, and so sees each array transposed. For it b comes before a, and n before m."""
    from cupy.cuda import cublas, get_cublas_handle

    (m, k), n = a.shape, b.shape[1]
    one, zero = np.ones(1, c.dtype), np.zeros(1, c.dtype)
    a_type, b_type, c_type = (_CODES[each.dtype.name] for each in (a, b, c))
    sums = cublas.CUBLAS_COMPUTE_32I if c.dtype == np.int32 else cublas.CUBLAS_COMPUTE_32F
    # fmt: off
    cublas.gemmEx(
        get_cublas_handle(), cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_N, n, m, k,
        one.ctypes.data, b.data.ptr, b_type, n, a.data.ptr, a_type, k,
        zero.ctypes.data, c.data.ptr, c_type, n, sums, cublas.CUBLAS_GEMM_DEFAULT,
    )
    # fmt: on


def _padded(array: cupy.ndarray) -> cupy.ndarray:
    """The array itself if the library takes it, else a copy with zeros behind its rows and columns."""
    import cupy

    rows, columns = array.shape
    larger = tuple(-(-size // _WORD) * _WORD for size in array.shape)
    if array.shape == larger and array.data.ptr % _WORD == 0:
        return array
    copy = cupy.zeros(larger, array.dtype)
    copy[:rows, :columns] = array
    return copy
