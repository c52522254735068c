"""The SYCL calls that dpctl has no Python function for. Import dpctl first: it brings libsycl."""

from collections.abc import Sequence
from typing import Any

from dpctl import SyclContext, SyclDevice, SyclQueue

class Kernel:
    """A kernel compiled for the devices of one context; it has no state, and may be launched by all threads."""

class Event:
    """A kernel that was started, with its times on the device once it has ended."""

def can_compile(device: SyclDevice) -> bool:
    """Whether the device's driver takes kernels that the SYCL runtime compiles from source."""

def in_order_queue(context: SyclContext, device: SyclDevice, profiled: bool) -> SyclQueue:
    """A queue that runs its commands in order, and keeps their times if `profiled`.

    `wait` raises the errors of its kernels.
    """

def compile(
    queue: SyclQueue, prelude: str, file: str, text: str, names: Sequence[str], options: Sequence[str]
) -> tuple[list[Kernel], list[str], bytes]:
    """Compile SYCL source, after a prelude, for the queue's device: a kernel for each name.

    Names may be instances of templates, as `vecadd<float>`; `file` is what errors call the text.
    Returns also the kernels' names in machine code, and that code, for `load`; it is empty where the device's driver
    gives none. Raises RuntimeError with the compiler's log. The interpreter lock is free meanwhile.
    """

def load(queue: SyclQueue, names: Sequence[str], code: bytes) -> list[Kernel]:
    """The kernels of these names in machine code that `compile` returned for the same device and driver.

    Raises RuntimeError for other bytes, but a driver may also end the process. The interpreter lock is free meanwhile.
    """

def launch(
    queue: SyclQueue,
    kernel: Kernel,
    addresses: Sequence[int],
    sizes: Sequence[Any],
    groups: Sequence[int],
    group: Sequence[int],
) -> Event | None:
    """Start a kernel on device memory (addresses) and sizes, signed 64-bit integers, and real numbers of NumPy.

    `groups` and `group` (items of one group) name the slowest dimension first, as SYCL does, and may
    cover more than 2^31 work items. Returns its event where the queue keeps times. Raises RuntimeError.
    The interpreter lock is free meanwhile.
    """

def wait(queue: SyclQueue, aside: bool) -> None:
    """Return when all that the queue was given has ended; RuntimeError with the first error among it.

    A CPU's runtime may compute on the waiting thread too; not so with `aside`. The interpreter lock is free meanwhile.
    """

def seconds(first: Event, last: Event) -> float:
    """Seconds on the device from the start of one kernel to the end of another, both of which have ended."""
