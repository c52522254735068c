"""What the two Numba backends share: whether Numba is there, and how it sees arrays of unknown formats."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import pickle
import platform
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from py_backends.backend import _wheels
from py_backends.system import caches, kernel_store

_SEEN_AS = {np.dtype(np.float16): np.dtype(np.int16), np.dtype(ml_dtypes.bfloat16): np.dtype(np.uint16)}
"""Integers that stand for the 16-bit formats. No kernel has them as formats, and they differ, so the type tells the
format."""
_PACKAGES = "py_backends", "py_backends.kernels"
"""What kernels of this distribution import, beside libraries."""
_SINCE = time.time()
"""Kernels are imported later."""


def seen(array: Any) -> Any:
    """An array, of NumPy or on a GPU, as sources see it: a view of the bits if Numba lacks its format."""
    bits = _SEEN_AS.get(array.dtype)
    return array if bits is None else array.view(bits)


def seen_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of such a view."""
    return _SEEN_AS.get(dtype, dtype)


def meant_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The format that such a dtype stands for."""
    return next((meant for meant, bits in _SEEN_AS.items() if bits == dtype), dtype)


def cpu() -> tuple[str, set[str]]:
    """The CPU that Numba compiles for: LLVM's triple, and its features, such as `+avx2` or `-avx2`."""
    registry = importlib.import_module("numba.core.registry")
    triple, _, features = registry.cpu_target.target_context.codegen().magic_tuple()
    return triple, set(features.split(","))


def load(extra: str) -> Any:
    """Numba itself. BackendUnavailable if it is missing, or does not fit the rest of the environment."""
    return _wheels.imported("numba", "Numba", extra)


def compile_or_load(kernel: Any, signature: tuple[Any, ...], module: ModuleType) -> None:
    """Compile one of this distribution's kernels for a signature, or load what was compiled earlier.

    Numba's own cache knows a source by its size and time, and not what it imports. Here the key has all sources of
    this distribution, and the values from which the module's functions are made, such as sizes of caches.
    """
    if signature in kernel.overloads:
        return

    def compiled() -> tuple[None, bytes | None]:
        kernel.compile(signature)
        result = kernel.overloads[signature]
        with contextlib.suppress(Exception):  # private parts of Numba, which another version may not have
            serialize = importlib.import_module("numba.core.serialize")
            if not result.library.has_dynamic_globals and all(each.can_cache for each in result.lifted):
                return None, serialize.dumps(result._reduce())  # noqa: SLF001  # as Numba's own cache does
        return None, None  # there are addresses in it, or nobody knows

    def load(kept: bytes) -> None:
        compiler = importlib.import_module("numba.core.compiler")
        with importlib.import_module("numba.core.compiler_lock").global_compiler_lock:
            context = kernel.targetctx
            context.refresh()
            result = compiler.CompileResult._rebuild(context, *pickle.loads(kept))  # noqa: S301, SLF001  # our own
            context.insert_user_function(result.entry_point, result.fndesc, [result.library])
            kernel.add_overload(result)

    kernel_store.kept(_key(kernel, signature, module), load, compiled)


def _key(kernel: Any, signature: tuple[Any, ...], module: ModuleType) -> str | None:
    """What names a compiled kernel in the store; None if it cannot be kept, or not everything can be read or asked."""
    with contextlib.suppress(Exception):
        return _key_of_all(kernel, signature, module)
    return None


def _key_of_all(kernel: Any, signature: tuple[Any, ...], module: ModuleType) -> str | None:
    sources = _sources()
    if sources is None:
        return None
    constants = {name: value for name, value in vars(module).items() if isinstance(value, int | float | str | tuple)}
    names = "numba", "llvmlite", "numpy"
    versions = [platform.python_version(), *(importlib.import_module(each).__version__ for each in names)]
    generated = kernel.targetctx.codegen().magic_tuple()
    facts = signature, generated, caches.by_level(), constants
    return kernel_store.key("numba", module.__name__, kernel.__name__, *versions, repr(facts), sources)


def _sources() -> bytes | None:
    """A digest of every Python file that a kernel may import. None if one may have changed since it was imported."""
    digest = hashlib.sha256()
    for folder in (Path(each) for package in _PACKAGES for each in importlib.import_module(package).__path__):
        for file in sorted(folder.rglob("*.py")):
            if file.stat().st_mtime > _SINCE:
                return None
            digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes() + b"\0")
    return digest.digest()
