"""What users find in `py_backends`: a function a kernel, and the names below."""

from __future__ import annotations

from typing import Any

from py_backends import _discovery, _functions
from py_backends._contract import BackendUnavailable, BrokenKernel
from py_backends.harness.compare import compare
from py_backends.harness.doctor import backends

_NAMES = {"BackendUnavailable": BackendUnavailable, "backends": backends, "compare": compare}


def names() -> list[str]:
    """Every public name."""
    return [*_NAMES, *_discovery.kernel_names()]


def find(name: str) -> Any:
    """What `py_backends.NAME` is; AttributeError where it is nothing."""
    if name in _NAMES:
        return _NAMES[name]
    if not _discovery.is_kernel(name):
        raise AttributeError(f"module 'py_backends' has no attribute {name!r}")
    try:
        return _functions.function(name)
    except BrokenKernel as broken:
        raise AttributeError(f"module 'py_backends' has no {name!r}: {broken}") from broken
