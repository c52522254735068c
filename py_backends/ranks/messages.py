"""Whether messages between ranks arrive as they were sent."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

import numpy as np

from py_backends.errors import BackendUnavailable

if TYPE_CHECKING:
    from mpi4py import MPI

BY_THE_SYSTEM = "MPIR_CVAR_CH4_CMA_ENABLE"
"""Whether MPICH has Linux copy large messages from process to process, by process_vm_readv(2)."""
_BYTES = 2**20
"""Of a trial message: every library sends it in the way in which it sends large ones."""


class _Part(ctypes.Structure):
    """A part of memory, as readv(2) takes it."""

    _fields_ = (("begin", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


def avoid_refused_copies() -> None:
    """Tell MPICH not to have messages copied by the system if that is refused here. Call it before MPI is loaded.

    MPICH 5.0 asks only Yama, a part of Linux that may be missing. Some sandboxes and emulators refuse it themselves.
    Then an exchange of large messages ends without an error and without the data.
    """
    if not _copies():
        os.environ.setdefault(BY_THE_SYSTEM, "0")


def _copies() -> bool:
    """Whether the system copies a byte from this process to itself. Rules on other processes do not concern that."""
    copy = getattr(ctypes.CDLL(None), "process_vm_readv", None)
    if copy is None:
        return False
    source, target = ctypes.c_char(b"x"), ctypes.c_char(b"-")
    to, of = (_Part(ctypes.addressof(each), 1) for each in (target, source))
    number = ctypes.c_ulong
    copied = copy(os.getpid(), ctypes.byref(to), number(1), ctypes.byref(of), number(1), number(0))
    return bool(copied == 1) and target.value == b"x"


def check(world: MPI.Intracomm) -> None:
    """Pass a large message around all ranks. Raises BackendUnavailable on each of them if one did not arrive."""
    from mpi4py import MPI  # `interface` imports this module before it loads MPI

    sent, received = np.full(_BYTES, world.rank % 251 + 1, np.uint8), np.zeros(_BYTES, np.uint8)
    before, after = (world.rank - 1) % world.size, (world.rank + 1) % world.size
    try:
        world.Sendrecv(sent, after, 0, received, before, 0)
        arrived = bool((received == before % 251 + 1).all())
    except MPI.Exception:
        arrived = False
    if not world.allreduce(arrived, MPI.LAND):
        raise BackendUnavailable(
            f"a message of {_BYTES:,} bytes between two ranks did not arrive as it was sent",
            f"for MPICH set {BY_THE_SYSTEM}=0, and for Open MPI OMPI_MCA_smsc=^cma: something refuses process_vm_readv",
        )
