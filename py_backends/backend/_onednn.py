"""Intel's oneDNN, which the backend onednn and its kernel share: called by its C interface.

It is that of its wheel, or the copy that the variable `PY_BACKENDS_ONEDNN` names.

A *primitive* is the code of one operation for one shape and its number formats. The library generates it on request.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, byref, c_char, c_char_p, c_float, c_int, c_int8, c_int64, c_size_t, c_void_p
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from py_backends.backend import _amx, _opencl_drivers, _sycl, _tbb, _wheels
from py_backends.contract import Array
from py_backends.errors import BackendUnavailable
from py_backends.install import pip_install

_CPU, _IN_ORDER, _MOST_DIMENSIONS = 1, 1, 12
"""dnnl_cpu, dnnl_stream_in_order and DNNL_MAX_NDIMS in the library's headers."""
_SOURCE, _WEIGHTS, _DESTINATION = 1, 33, 17
"""DNNL_ARG_SRC, DNNL_ARG_WEIGHTS and DNNL_ARG_DST: the arrays of a primitive."""
_INFERENCE, _EXPONENTIAL = 96, 0x2A
"""dnnl_forward_inference and dnnl_eltwise_exp."""
_FORMATS = {"float16": 1, "bfloat16": 2, "float32": 3, "int32": 4, "int8": 5, "float64": 7}
"""dnnl_data_type_t."""
_LIBRARY = "PY_BACKENDS_ONEDNN"
"""The variable that names another copy, by the path of libdnnl.so."""
_SEQUENTIAL, _OPENMP = 1, 2
"""DNNL_RUNTIME_SEQ and DNNL_RUNTIME_OMP: what a copy has its threads from. The wheel's has them from SYCL, and that has
them from TBB."""
_STEPS_OF_TILES = 32
"""Of bfloat16, that AMX multiplies at a time."""
_PRIMITIVES = 64
"""How many primitives a thread keeps."""


class Failed(RuntimeError):
    """The library refused something, for instance as `unimplemented`."""


class Matrix(NamedTuple):
    """What a primitive has to know about a matrix that is stored by rows, or by columns."""

    rows: int
    columns: int
    dtype: np.dtype[Any]
    by_columns: bool = False


class _Argument(ctypes.Structure):
    """dnnl_exec_arg_t."""

    _fields_ = [("which", c_int), ("memory", c_void_p)]


class _Version(ctypes.Structure):
    """The beginning of dnnl_version_t."""

    _fields_ = [("major", c_int), ("minor", c_int), ("patch", c_int), ("hash", c_char_p), ("runtime", c_int)]


@cache
def library() -> ctypes.CDLL:
    """The library, called without the interpreter lock. BackendUnavailable if it is missing, or finds no CPU."""
    named = os.environ.get(_LIBRARY)
    path = Path(named).absolute() if named else _wheels.library("onednn", "oneDNN", "libdnnl.so")
    _opencl_drivers.find()  # it finds the CPU by SYCL, and SYCL by OpenCL
    try:
        dnnl = _loaded(path)
    except OSError as error:
        fix = f"set {_LIBRARY} to a libdnnl.so, or unset it" if named else pip_install("peers")
        raise BackendUnavailable(f"oneDNN cannot be loaded: {error}", fix) from None
    _declare(dnnl)
    if not {"ONEDNN_VERBOSE", "DNNL_VERBOSE"} & os.environ.keys():
        dnnl.dnnl_set_verbose(0)  # it would write to the caller's output what it also returns
    if not dnnl.dnnl_engine_get_count(_CPU):
        raise _sycl.why_hidden() or BackendUnavailable(
            "oneDNN finds no CPU among the devices of SYCL", pip_install("peers")
        )
    return dnnl


def version() -> str:
    """The versions of the library and of the wheel, or of another copy its path."""
    number, named = _version(), os.environ.get(_LIBRARY)
    of = named or f"wheel {importlib.metadata.version('onednn')}"
    return f"{number.major}.{number.minor}.{number.patch}, {of}"


def most_threads() -> int:
    """As many as are taken by what is called in this thread; 0 where nothing tells."""
    if _version().runtime == _SEQUENTIAL:
        return 1
    if _version().runtime != _OPENMP:
        return _tbb.most_threads()
    try:
        return int(library().omp_get_max_threads())  # of the OpenMP that it was linked with, whoever made that
    except AttributeError:
        return 0


def limited_to(threads: int, call: Callable[[], None]) -> None:
    """Have what is called take no more than these threads. Raises what it raises."""
    if _version().runtime != _OPENMP:
        _tbb.limited_to(threads, call)
        return
    before, set_threads = most_threads(), library().omp_set_num_threads
    set_threads(threads)
    try:
        call()
    finally:
        set_threads(before)


@cache
def _version() -> _Version:
    found: _Version = library().dnnl_version().contents
    return found


def check() -> None:
    """Raise BackendUnavailable where the library cannot compute here, whatever the number format."""
    try:
        _engine()
    except Failed as failed:
        why, fix = _opencl_drivers.why_no_context() or (str(failed), None)
        raise BackendUnavailable(f"oneDNN cannot use the CPU: {why}", fix) from failed


def takes(dtype: str) -> bool:
    """Whether the library multiplies a number format on this CPU into 32 bits, by a small product.

    Without VNNI its sums of two products of int8 stay within 16 bits.
    """
    n, most = 64, 127 if dtype == "int8" else 1
    a, c = np.full(n * n, most, dtype), np.empty(n * n, np.int32 if dtype == "int8" else np.float32)
    try:
        if dtype == "int8":
            multiply_integers(a, a, c, n, n, n)
        else:
            multiply(a, a, c, (Matrix(n, n, a.dtype), Matrix(n, n, a.dtype), Matrix(n, n, c.dtype)))
    except Failed:
        return False
    return bool((c == n * most * most).all())


def multiply(a: Array, b: Array, c: Array, of: tuple[Matrix, Matrix, Matrix]) -> None:
    """Write a b to c, arrays of these matrices, with sums of one product at least; returns when it is done.

    Raises `Failed`.

    By AMX oneDNN multiplies 32 steps of bfloat16 at a time. Where there are not as many, it reads on into the next row
    of a, and infinity or NaN there spoils this row. So both are filled with zeros.
    """
    rows, steps, dtype, _ = of[0]
    columns, by_columns = of[1].columns, of[1].by_columns
    if dtype.name == "bfloat16" and (lacking := -steps % _STEPS_OF_TILES) and _amx.listed():
        a = np.pad(a[: rows * steps].reshape(rows, steps), ((0, 0), (0, lacking))).ravel()
        as_stored = b[: steps * columns].reshape((columns, steps) if by_columns else (steps, columns))
        b = np.pad(as_stored, ((0, 0), (0, lacking)) if by_columns else ((0, lacking), (0, 0))).ravel()
        whole = steps + lacking
        of = Matrix(rows, whole, dtype), Matrix(whole, columns, dtype, by_columns), of[2]
    _run(_product, of, {_SOURCE: a, _WEIGHTS: b, _DESTINATION: c})


def exponentiate(x: Array) -> None:
    """Write e^x to x, a matrix stored by rows; returns when it is done. Raises `Failed`."""
    _run(_exponentials, (Matrix(x.shape[0], x.shape[1], x.dtype),), {_SOURCE: x, _DESTINATION: x})


def _run(operation: Operation, of: tuple[Matrix, ...], arrays: Mapping[int, Array]) -> None:
    """Run the primitive of an operation on these matrices, with the arrays by their roles."""
    mine = _of_thread
    if not hasattr(mine, "primitives"):
        mine.primitives, mine.stream = OrderedDict(), _made("stream", _engine(), _IN_ORDER)
    # With OpenMP a primitive keeps the number of threads with which it was made.
    key = operation, of, most_threads() if _version().runtime == _OPENMP else None
    primitive = mine.primitives.pop(key, None) or _Primitive(_engine(), operation, of)
    mine.primitives[key] = primitive  # the last to be dropped
    if len(mine.primitives) > _PRIMITIVES:
        mine.primitives.popitem(last=False)
    primitive.run(arrays, mine.stream)


def multiply_integers(a: Array, b: Array, c: Array, m: int, n: int, k: int) -> None:
    """Write a b to c, of int8 and int32, with sums of one product at least. Raises `Failed`.

    It calls a function of the library, whose sums are exact. Those of its primitive pass through float32.
    """
    plain, one, offset = (b"N", b"N", b"F"), 1.0, 0
    to_a, to_b, to_c = (array.ctypes.data for array in (a, b, c))
    none = np.zeros(1, np.int32)
    sizes, row = (m, n, k), max(1, n)  # an empty row counts as one element long
    output = 0.0, to_c, row, none.ctypes.data
    _check(library().dnnl_gemm_s8s8s32(*plain, *sizes, one, to_a, k, offset, to_b, row, offset, *output))


_of_thread = threading.local()
"""The stream and the primitives of a thread. A primitive has one scratchpad, so it runs once at a time."""


class _Handle:
    """An object of the library, destroyed with this one."""

    def __init__(self, kind: str, handle: c_void_p) -> None:
        self._as_parameter_ = handle
        self._destroy = getattr(library(), f"dnnl_{kind}_destroy")

    def __del__(self) -> None:
        self._destroy(self)


Operation = Callable[["_Handle", Sequence["_Handle"]], "_Handle"]
"""Makes the steps of a primitive of an engine, for descriptions of matrices."""


def _product(engine: _Handle, of: Sequence[_Handle]) -> _Handle:
    a, b, c = of
    return _made("primitive_desc", engine, a, b, None, c, None, function="dnnl_matmul_primitive_desc_create")


def _exponentials(engine: _Handle, of: Sequence[_Handle]) -> _Handle:
    (x,) = of
    given = engine, _INFERENCE, _EXPONENTIAL, x, x, c_float(0), c_float(0), None
    return _made("primitive_desc", *given, function="dnnl_eltwise_forward_primitive_desc_create")


class _Primitive:
    """An operation on matrices of one shape and number format."""

    def __init__(self, engine: _Handle, operation: Operation, of: Sequence[Matrix]) -> None:
        self._engine = engine
        self._descriptions = [_description(matrix) for matrix in of]
        self._primitive = _made("primitive", operation(engine, self._descriptions))

    def run(self, arrays: Mapping[int, Array], stream: _Handle) -> None:
        """Wait until it is done, interrupted or not: it must not write to the arrays of a call that has ended."""
        dnnl = library()
        described = zip(cycle(self._descriptions), (array.ctypes.data for array in arrays.values()), strict=False)
        memories = [_made("memory", description, self._engine, address) for description, address in described]
        which = zip(arrays, memories, strict=True)
        arguments = (_Argument * len(memories))(*[_Argument(each, memory._as_parameter_) for each, memory in which])
        execute, wait = dnnl.dnnl_primitive_execute, dnnl.dnnl_stream_wait
        try:
            _check(execute(self._primitive, stream, len(memories), arguments))
        finally:
            waited = wait(stream)
        _check(waited)


def _description(matrix: Matrix) -> _Handle:
    apart = (1, matrix.rows) if matrix.by_columns else (matrix.columns, 1)
    sizes, distances = (c_int64 * _MOST_DIMENSIONS)(*matrix[:2]), (c_int64 * _MOST_DIMENSIONS)(*apart)
    given = 2, sizes, _FORMATS[matrix.dtype.name], distances
    return _made("memory_desc", *given, function="dnnl_memory_desc_create_with_strides")


_engines: list[_Handle] = []
"""The one of this process: what is made with one fits no other."""
_making_engine = threading.Lock()


def _engine() -> _Handle:
    with _making_engine:
        if not _engines:
            _engines.append(_made("engine", _CPU, 0))
    return _engines[0]


def _made(kind: str, *given: Any, function: str | None = None) -> _Handle:
    """The object that `dnnl_KIND_create`, or another function, makes."""
    handle = c_void_p()
    _check(getattr(library(), function or f"dnnl_{kind}_create")(byref(handle), *given))
    return _Handle(kind, handle)


def _check(status: int) -> None:
    if status:
        raise Failed(f"oneDNN: {library().dnnl_status2str(status).decode()}")


def _loaded(path: Path) -> ctypes.CDLL:
    """Load a library together with those that it needs, which are beside it. OSError if one is missing."""
    tried: set[str] = set()
    while True:
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            missing = str(error).partition(":")[0]
            if missing in tried or Path(missing).name != missing or not path.with_name(missing).is_file():
                raise
            tried.add(missing)
            _loaded(path.with_name(missing))


def _declare(dnnl: ctypes.CDLL) -> None:
    """Give types to functions that take more than objects. Otherwise `ctypes` would pass sizes as 32-bit integers."""
    dnnl.dnnl_engine_get_count.restype = c_size_t
    dnnl.dnnl_engine_create.argtypes = (c_void_p, c_int, c_size_t)
    dnnl.dnnl_memory_create.argtypes = (c_void_p, c_void_p, c_void_p, c_void_p)
    size = c_int64
    dnnl.dnnl_gemm_s8s8s32.argtypes = (
        *(c_char, c_char, c_char, size, size, size),
        *(c_float, c_void_p, size, c_int8, c_void_p, size, c_int8),
        *(c_float, c_void_p, size, c_void_p),
    )
    dnnl.dnnl_status2str.restype = c_char_p
    dnnl.dnnl_version.restype = POINTER(_Version)
