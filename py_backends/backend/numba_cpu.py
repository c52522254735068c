"""Numba on the CPU: Python loops compiled by LLVM, with the outer one spread over threads (`prange`).

The target `amx` is that with Intel's tiles, which intrinsics emit.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from py_backends import contract
from py_backends.backend import _amx, _numba, _openmp, _tbb
from py_backends.contract import Array, Buffer, Launch, Target
from py_backends.errors import BackendUnavailable
from py_backends.kernel_text import KernelText
from py_backends.number_formats import COMPILED
from py_backends.wording import in_one_line

_ANY_POOL = "default"
"""Numba's threading layer where none is asked for."""
_ONE_AT_A_TIME = threading.Lock()
_AMX_FEATURES = {"+amx-tile", "+amx-bf16", "+amx-int8"}


class Backend(contract.Backend):
    dtypes = COMPILED

    def targets(self) -> list[Target]:
        try:
            numba = _load()
        except BackendUnavailable as missing:
            amx = Target.missing("amx", missing.reason, missing.fix, _amx.taken("numba_cpu"))
            return [amx, Target.missing("cpu", missing.reason, missing.fix)]
        cpu = Target("cpu", version=f"Numba {numba.__version__}, LLVM {_llvm_version()}", just_in_time=True)
        if why := _why_no_tiles():
            return [Target.missing("amx", why.reason, why.fix, _amx.taken("numba_cpu")), cpu]
        return [replace(cpu, name="amx", dtypes=_amx.taken("numba_cpu")), cpu]

    def open(self, target: str, threads: int) -> contract.Device:
        numba = _load()
        if target == "amx" and (why := _why_no_tiles()):
            raise why
        return Device(numba, threads, "amx" if target == "amx" else None)


class Device(contract.HostDevice):
    """Runs with `threads` threads of Numba's pool, whose size was fixed when Numba was imported."""

    deterministic = True  # as many threads take the same chunks, and each element is one sum

    def __init__(self, numba: Any, threads: int, part: str | None = None) -> None:
        """`part`: of sources in several modules, the one to run."""
        self._numba = numba
        self._part = part
        most = numba.config.NUMBA_NUM_THREADS
        self._threads = min(threads, most)
        if threads > most:
            self.note = f"Numba's pool has {most} threads, set by NUMBA_NUM_THREADS or the number of cores"
        _start_pool(numba)
        # Without OpenMP and TBB, Numba uses its own pool, which aborts the process when two threads meet.
        own_pool = numba.threading_layer() == "workqueue"
        self._turn = _ONE_AT_A_TIME if own_pool else nullcontext()
        self.survives_fork = own_pool  # on OpenMP, Numba ends a child that uses it
        _openmp.end_threads_before_forks()  # so that the child can still use other backends

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        module = text.load(self._part)
        kernel, signature = getattr(module, text.kernel), _signature(self._numba, text, dtype)
        if text.package is None:
            _numba.compile_or_load(kernel, signature, module)
        else:  # nobody knows all that it is made from
            kernel.compile(signature)
        problem, count = text.problem, len(text.problem.inputs)

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            arrays = [_numba.seen(array) for array in text.shaped(buffers, sizes)]
            numbers = problem.scalars(sizes, dtype) if problem.reals else sizes
            with self._turn, self._thread_count():
                kernel(*map(_read_only, arrays[:count]), *arrays[count:], *numbers)

        return launch

    @contextmanager
    def _thread_count(self) -> Iterator[None]:
        """Set Numba's number of threads, which belongs to the calling thread, and restore it afterwards."""
        before = self._numba.get_num_threads()
        self._numba.set_num_threads(self._threads)
        try:
            yield
        finally:
            self._numba.set_num_threads(before)


def _load() -> Any:
    """Numba, if its compiler is there and switched on. BackendUnavailable where not."""
    numba = _numba.load("numba")
    if numba.config.DISABLE_JIT:
        raise BackendUnavailable("Numba's compiler is switched off", "unset NUMBA_DISABLE_JIT")
    if numba.config.THREADING_LAYER.lower() == "tbb":
        _tbb.load()
    if numba.config.THREADING_LAYER != _ANY_POOL:
        _start_pool(numba)
    return numba


def _start_pool(numba: Any) -> None:
    """Start the threads, whose kind is then known. BackendUnavailable if the kind that is asked for is missing."""
    try:
        numba.set_num_threads(numba.get_num_threads())
    except ValueError as error:
        named = numba.config.THREADING_LAYER
        reason = f"Numba has no threads with NUMBA_THREADING_LAYER={named}: {in_one_line(str(error), 1)}"
        raise BackendUnavailable(reason, "unset NUMBA_THREADING_LAYER") from error


def _why_no_tiles() -> BackendUnavailable | None:
    """Why nothing can be compiled for AMX, or run with it; None where it can."""
    _, features = _numba.cpu()
    if not features >= _AMX_FEATURES:
        if not _amx.listed():
            return BackendUnavailable(_amx.LACKING, _amx.FIX)
        reason = "Numba compiles for a CPU without AMX"
        return BackendUnavailable(reason, "unset NUMBA_CPU_NAME and NUMBA_CPU_FEATURES")
    refusal = _amx.refusal()
    return None if refusal is None else BackendUnavailable(refusal)


def _signature(numba: Any, text: KernelText, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """The types of one launch: inputs that are never written, outputs, sizes."""
    problem = text.problem
    arrays = zip(problem.array_dtypes(dtype), problem.shapes(problem.default_sizes), strict=True)
    return (
        *(
            numba.types.Array(
                numba.from_dtype(_numba.seen_dtype(each)), len(shape), "C", readonly=at < len(problem.inputs)
            )
            for at, (each, shape) in enumerate(arrays)
        ),
        *map(numba.typeof, problem.scalars(problem.default_sizes, dtype)),
    )


def _read_only(array: Array) -> Array:
    """A read-only view. Numba compiles for that, so that one compiled kernel takes every input."""
    array.flags.writeable = False  # changes the view that `shaped` made, not the caller's array
    return array


def _llvm_version() -> str:
    return ".".join(map(str, importlib.import_module("llvmlite.binding").llvm_version_info))
