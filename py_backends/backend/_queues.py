"""What the backends share that start kernels in queues, OpenCL and SYCL: launches, threads and scratch memory."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from py_backends import contract
from py_backends.backend._scratch import Scratch
from py_backends.contract import Buffer, KernelText, Launch
from py_backends.number_formats import number_format
from py_backends.system import caches

Event = Any
"""An event of the library, which has the times of a kernel."""
Start = Callable[[Sequence[Buffer], Sequence[Any], Sequence[int], Sequence[int]], Event]
"""Starts a kernel on buffers and sizes (numbers of NumPy), with a number of groups, and of items in a group, the
fastest dimension first. Returns its event, or None if no times are kept."""


class Device(contract.Device):
    """A device that compiles kernels at run time, or as much of it as `threads` allow.

    Each thread that calls it has a queue of its own, which runs commands in order, and scratch memory.

    device: of the library; both libraries name what is asked of it alike.
    part: makes a sub-device of so many threads. It raises `refusal` if the driver does not. Then the whole device runs,
        with a note.
    form: what its kernels are written for, `CPU`, `AMX` or `GPU`; None for the device's own kind.
    """

    deterministic = True  # each element is one work item's sum in one order

    def __init__(
        self,
        device: Any,
        threads: int,
        form: str | None,
        *,
        on_cpu: bool,
        part: Callable[[], Any],
        refusal: type[Exception],
    ) -> None:
        self._device = device
        self._of_thread = threading.local()
        self._scratch = Scratch(self._new_scratch, self.release)
        self.on_cpu = on_cpu
        self._form = form or ("CPU" if on_cpu else "GPU")
        if on_cpu and threads < device.max_compute_units:
            try:
                self._device = part()
            except refusal:
                self.note = f"its driver cannot use {threads} of its {device.max_compute_units} threads: all run"
                self.obeys_threads = False

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        stages = text.stages(self._form)
        starts = self._starts(text, dtype, [name for name, _ in stages.kernels])
        problem = text.problem

        def scratch(elements: int, of: np.dtype[Any], piece: int) -> Buffer:
            return self._scratch.hold(elements * of.itemsize, piece)

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            # Events are kept only if they will be asked for, since an event keeps what its command has used.
            events: deque[Event] = deque(maxlen=None if self.profiled else 0)
            for each in stages.launches(problem, dtype, buffers, sizes, scratch):
                numbers = problem.scalars(each.sizes, dtype)
                events.append(starts[each.at](each.buffers, numbers, each.groups, each.group))
            self._of_thread.events = events

        return launch

    @abstractmethod
    def _starts(self, text: KernelText, dtype: np.dtype[Any], names: Sequence[str]) -> list[Start]:
        """Compile kernels of a source. BackendUnavailable if the device lacks the dtype."""

    def event_seconds(self) -> float | None:
        if not self.profiled:
            return None
        events: deque[Event] = self._of_thread.events
        return self._seconds(events[0], events[-1])

    @abstractmethod
    def _seconds(self, first: Event, last: Event) -> float:
        """Seconds on the device from the start of one kernel to the end of another. Both have ended."""

    @property
    def _queue(self) -> Any:
        """The calling thread's queue. So a wait is only for this thread's commands and errors."""
        if not hasattr(self._of_thread, "queue"):
            self._of_thread.queue = self._new_queue()
        return self._of_thread.queue

    @abstractmethod
    def _new_queue(self) -> Any:
        """A queue that runs commands in order, and keeps times if the device is profiled."""

    @abstractmethod
    def _new_scratch(self, size: int) -> Buffer:
        """Memory of so many bytes, whose `size` is at least that."""

    def _check_size(self, size: int) -> None:
        """Raise MemoryError where the device cannot hold that much in one piece."""
        most = self._device.max_mem_alloc_size
        if size > most:
            name = self._device.name.strip()
            raise MemoryError(f"{name} holds at most {most / 2**30:.1f} GiB in one array, not {size / 2**30:.1f}")

    def _lanes_and_cache(self, sums: np.dtype[Any]) -> tuple[int, int]:
        """What sources may know about the device: elements of one of its vectors, and bytes of its cache."""
        lanes = getattr(self._device, f"native_vector_width_{number_format(sums).c}")
        # Drivers of CPUs give the size of the second level.
        return max(1, lanes), caches.effective_cache() if self.on_cpu else self._device.global_mem_cache_size
