"""AMX, Intel's tiles, for backends that compile at run time: what they say where there is none."""

from __future__ import annotations

import ctypes
import os
from functools import cache

from py_backends import registry
from py_backends.system import cpu

LACKING = "this CPU lacks AMX-TILE, AMX-BF16 and AMX-INT8"
FIX = "needs a CPU that has it"
_FEATURES = {"amx_tile", "amx_bf16", "amx_int8"}
_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18
"""A system call of x86-64, ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA (Linux, Documentation/arch/x86/xstate.rst)."""


def taken(backend: str) -> dict[str, tuple[str, ...]]:
    """The number formats that the target amx takes, by source of a backend, such as `matmul/tuned`.

    Tiles are matrices of narrow formats. So only sources that say what they do with them run there.
    """
    texts = [text for kernel in registry.kernel_names() for text in registry.kernel_texts(kernel, backend).values()]
    return {f"{text.kernel}/{text.variant}": named for text in texts if (named := text.dtypes_on("amx"))}


def listed() -> bool:
    """Whether the system lists AMX among what the CPU has. An emulator may pass on the list of its host."""
    return cpu.features() >= _FEATURES


@cache
def refusal() -> str | None:
    """Ask the system for tiles for all threads of this process. Returns why there are none, or None.

    Tiles make a thread's state several times as large, so Linux gives them only to processes that ask.
    """
    request = (ctypes.c_long(number) for number in (_ARCH_PRCTL, _REQUEST, _TILE_DATA))
    if ctypes.CDLL(None, use_errno=True).syscall(*request) == 0:
        return None
    return f"the system does not let this process use AMX tiles: {os.strerror(ctypes.get_errno())}"
