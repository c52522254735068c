"""Kernels in Triton: how an array is cleared, and what lies beneath decorators that choose constants."""

from __future__ import annotations

import inspect
from typing import Any

import triton
import triton.language as tl
from triton.runtime.autotuner import Autotuner, Heuristics


@triton.jit
def clear(array, elements):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  # the compiler would look for names
    """Write zeros to the elements of this program."""
    at = tl.program_id(0).to(tl.int64) * 256 + tl.arange(0, 256)
    tl.store(array + at, tl.zeros([256], array.dtype.element_ty), at < elements)


def beneath(kernel: Any) -> Any:
    """The kernel that `triton.autotune` and `triton.heuristics` would launch."""
    return beneath(kernel.fn) if isinstance(kernel, Autotuner | Heuristics) else kernel


def first_of(kernel: Any, name: str) -> Any:
    """A constant of the first configuration, else its default. KeyError where there is neither."""
    given, own = _first(kernel).kwargs, inspect.signature(beneath(kernel).fn).parameters[name]
    return tl.constexpr(given[name] if own.default is own.empty else given.get(name, own.default))


def options_of(kernel: Any) -> dict[str, int]:
    """What the first configuration says to the compiler."""
    first = _first(kernel)
    return {"num_warps": first.num_warps, "num_stages": first.num_stages}


def _first(kernel: Any) -> Any:
    return kernel.configs[0] if isinstance(kernel, Autotuner) else _first(kernel.fn)
