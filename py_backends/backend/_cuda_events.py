"""The time of launches on NVIDIA's GPUs by their own events, for every backend that computes there."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from py_backends import contract
from py_backends.contract import Buffer, Launch

_FIRST_PAUSE, _SHORTEST_PAUSE, _LONGEST_PAUSE = 10.0, 5.0, 500.0
"""Microseconds."""
_LONGER, _SHORTER = 1.5, 0.99
"""By what a pause is multiplied after a launch for which it was too short, and after any other."""


class Device(contract.Device):
    """An NVIDIA GPU. Launches are timed by an event before and one after.

    An idle GPU notes the first event at once, and then waits until the host has prepared the launch. That takes tens of
    microseconds, and is no time of the kernel. So the GPU pauses before the first event, until the host has queued
    everything. (NVBench has a blocking kernel for this.) The pause is just long enough for most launches, since the
    host's clock sees it.
    """

    on_cpu = False

    def __init__(self) -> None:
        self._of_thread = threading.local()

    @property
    def profiled(self) -> bool:
        """Whether times are kept. To say so compiles the pause, before anything is timed."""
        return self._profiled

    @profiled.setter
    def profiled(self, wanted: bool) -> None:
        self._profiled = wanted
        if wanted:
            with self._current:
                self._pause(1)

    _profiled = False

    @property
    @abstractmethod
    def _current(self) -> AbstractContextManager[Any]:
        """Makes this GPU the calling thread's."""

    @abstractmethod
    def _record(self) -> Any:
        """A new event, noted when the GPU has done what this thread gave it before."""

    @abstractmethod
    def _noted(self, event: Any) -> bool:
        """Whether the GPU has come to the event. False where it has failed: a wait tells how."""

    @abstractmethod
    def _milliseconds(self, begin: Any, end: Any) -> float:
        """The time between two events, both noted."""

    @abstractmethod
    def _pause(self, microseconds: float) -> None:
        """Keep this thread's stream on the GPU waiting, for about so long. Returns at once."""

    def recorded(self, launch: Launch) -> Launch:
        """The launch, between two events if its time will be asked for."""
        if not self.profiled:
            return launch

        def between_events(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            pause = getattr(self._of_thread, "pause", _FIRST_PAUSE)
            with self._current:
                self._pause(pause)
                begin = self._record()
                launch(buffers, sizes)
                end = self._record()
                too_short = self._noted(begin)
            next_pause = pause * (_LONGER if too_short else _SHORTER)
            self._of_thread.pause = min(max(next_pause, _SHORTEST_PAUSE), _LONGEST_PAUSE)
            self._of_thread.events = begin, end

        return between_events

    def event_seconds(self) -> float | None:
        if not self.profiled:
            return None
        return self._milliseconds(*self._of_thread.events) / 1000
