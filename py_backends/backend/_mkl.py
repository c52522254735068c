"""Intel's oneMKL, which the backend mkl and its kernels share: found in its wheel, with the types of its functions."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
from functools import cache

import numpy as np

from py_backends.backend import _openmp, _tbb, _wheels
from py_backends.contract import Array
from py_backends.errors import BackendUnavailable
from py_backends.install import pip_install

ROW_MAJOR, NOT_TRANSPOSED, TRANSPOSED, FIXED_OFFSET = 101, 111, 112, 173
"""CblasRowMajor, CblasNoTrans and CblasTrans of BLAS in C; CblasFixOffset of MKL's products of integers."""

_LAYER = "MKL_THREADING_LAYER"
_INTEL_LAYER, _GNU_LAYER = 0, 3
"""MKL_THREADING_INTEL and MKL_THREADING_GNU in mkl_service.h."""


class _Elements(ctypes.c_void_p):
    """The type of a parameter that is a NumPy array: C sees the address of its first element.

    `array.ctypes.data` would take longer than MKL takes for a small matrix. The address directly follows the head of
    every Python object. That is fixed by PyArrayObject_fields in NumPy's ndarraytypes.h, which extensions are compiled
    against.
    """

    @classmethod
    def from_param(cls, array: Array, /) -> _Elements:
        return cls.from_address(id(array) + object.__basicsize__)


@cache
def library() -> ctypes.CDLL:
    """MKL with 64-bit sizes, called without the interpreter lock. BackendUnavailable if it is missing."""
    if os.environ.get(_LAYER, "").upper() == "TBB":
        _tbb.load()  # beside MKL, where MKL does not look
    path = _wheels.library("mkl", "MKL", "libmkl_rt.so")  # it loads MKL's others, as the CPU and the calls need them
    try:
        mkl = ctypes.CDLL(str(path))
    except OSError as error:
        raise BackendUnavailable(f"MKL cannot be loaded: {error}", pip_install("peers")) from None
    _choose_threading_layer(mkl)
    _declare(mkl)
    return mkl


@cache
def integers_are_exact() -> bool:
    """Whether products of int8 are right, by a small one. Without VNNI, sums of two products saturate at 16 bits."""
    mkl, n = library(), 64
    a, b, c = np.full(n * n, 255, np.uint8), np.full(n * n, 127, np.int8), np.empty(n * n, np.int32)
    none, plain = np.zeros(1, np.int32), (NOT_TRANSPOSED, NOT_TRANSPOSED)
    before = mkl.MKL_Set_Num_Threads_Local(1)
    mkl.cblas_gemm_s8u8s32_64(ROW_MAJOR, *plain, FIXED_OFFSET, n, n, n, 1, a, n, -128, b, n, 0, 0, c, n, none)
    mkl.MKL_Set_Num_Threads_Local(before)
    return bool((c == 127 * 127 * n).all())


def version() -> str:
    """The version of the wheel."""
    return importlib.metadata.version("mkl")


def survives_forks() -> bool:
    """Whether its threads are those of GNU's OpenMP, which end before a fork."""
    return os.environ.get(_LAYER, "GNU").upper() == "GNU" and _openmp.end_threads_before_forks()


def _choose_threading_layer(mkl: ctypes.CDLL) -> None:
    """Let MKL use GNU's OpenMP where the system has it, as our C++ kernels do. Then there is one pool of threads.

    It is as fast as Intel's own OpenMP, whose idle threads would spin for 0.2 s on cores that other code in this
    process needs. MKL ends the process if it cannot load a threading layer, so this tries to load it first. A layer
    that the user names stays. So does that of an MKL that this process has already used.
    """
    if _LAYER not in os.environ:
        mkl.MKL_Set_Threading_Layer(_GNU_LAYER if _openmp.end_threads_before_forks() else _INTEL_LAYER)


def _declare(mkl: ctypes.CDLL) -> None:
    """Give the functions that we call their types. Otherwise `ctypes` would pass sizes as 32-bit integers."""
    size, layout = ctypes.c_int64, ctypes.c_int
    for gemm, number in (
        (mkl.cblas_sgemm_64, ctypes.c_float),
        (mkl.cblas_dgemm_64, ctypes.c_double),
        (mkl.cblas_gemm_f16f16f32_64, ctypes.c_float),
        (mkl.cblas_gemm_bf16bf16f32_64, ctypes.c_float),
    ):
        gemm.argtypes = (
            *(layout, layout, layout, size, size, size),
            *(number, _Elements, size, _Elements, size, number, _Elements, size),
        )
        gemm.restype = None
    mkl.cblas_gemm_s8u8s32_64.argtypes = (
        *(layout, layout, layout, layout, size, size, size),
        *(ctypes.c_float, _Elements, size, ctypes.c_int8, _Elements, size, ctypes.c_int8),
        *(ctypes.c_float, _Elements, size, _Elements),
    )
    mkl.cblas_gemm_s8u8s32_64.restype = None
    for add in (mkl.vsAdd_64, mkl.vdAdd_64):
        add.argtypes = (size, _Elements, _Elements, _Elements)
        add.restype = None
    for exponentials in (mkl.vsExp_64, mkl.vdExp_64):
        exponentials.argtypes = (size, _Elements, _Elements)
        exponentials.restype = None
    for dot, number in ((mkl.cblas_sdot_64, ctypes.c_float), (mkl.cblas_ddot_64, ctypes.c_double)):
        dot.argtypes = (size, _Elements, size, _Elements, size)
        dot.restype = number
    for move, number in ((mkl.MKL_Somatcopy, ctypes.c_float), (mkl.MKL_Domatcopy, ctypes.c_double)):
        # Their sizes are size_t in mkl_trans.h, so they have no form with _64 in its name.
        move.argtypes = (
            *(ctypes.c_char, ctypes.c_char, ctypes.c_size_t, ctypes.c_size_t),
            *(number, _Elements, ctypes.c_size_t, _Elements, ctypes.c_size_t),
        )
        move.restype = None
    mkl.MKL_Set_Num_Threads_Local.argtypes = (ctypes.c_int,)
