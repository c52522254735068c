"""A worker: a process for one backend on one target, which receives requests over a channel.

`py_backends.workers.process` starts it as `python -m py_backends.workers.session DESCRIPTOR`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from statistics import median
from string import ascii_lowercase
from time import perf_counter
from timeit import Timer
from typing import Any, NamedTuple

import numpy as np

import py_backends
from py_backends import plugins, registry
from py_backends.contract import Array, Communication, Device, HostDevice, Launch, Target
from py_backends.errors import BackendUnavailable
from py_backends.functions import call
from py_backends.functions.targets import targets_of
from py_backends.kernel_text import KernelText
from py_backends.number_formats import number_format
from py_backends.system import kernel_store
from py_backends.system.bits import page_aligned_copy, same_bits
from py_backends.system.shared_memory import SharedMemory
from py_backends.wording import listed
from py_backends.workers.arena import Span
from py_backends.workers.flush import flush
from py_backends.workers.serve import serve
from py_backends.workers.threads_apart import move_apart

_SHORTEST = 1e-9
"""Seconds that replace a time of 0 or less: speed-ups and rates divide by it. A device's events may give 0 for a short
kernel."""
_MOST_KEPT = 2**24
"""Bytes of the arrays of a statement. Larger arrays are copied again for each sample."""


class Session:
    """The state of a worker: an open device, arenas and prepared kernels. Timed Python statements share them.

    Each request names the place of its case: the arena, and the `spans` in it.
    """

    def __init__(self) -> None:
        self._device: Device
        self._backend = ""
        self._arenas: dict[int, list[SharedMemory]] = {}
        self._copies: dict[int, dict[str, list[Array]]] = {}
        self._launches: dict[tuple[str, str, str], Launch] = {}
        self._known: set[tuple[int, ...]] = set()

    def targets(
        self, descriptors: list[int], backend: str, named: list[str], threads: Sequence[int] = ()
    ) -> dict[str, Any]:
        """Every target of a backend, with its number formats.

        named: names of further targets, which the backend may have without listing them.
        threads: numbers of threads. `on_threads` of a target has pairs of a number and the target of the same kind for
            it. They are pairs, since keys of JSON are strings.
        """
        names = [field.name for field in fields(Target)]  # a plug-in's own class may have more
        found = [{name: getattr(target, name) for name in names} for target in targets_of(backend, named)]
        kernels, declared = registry.promised_kernels(), registry.backend(backend).dtypes
        for target in found:
            target["environment"] = dict(target["environment"])
            others = registry.on_threads(backend, target["name"], threads) if target["available"] else {}
            target["on_threads"] = list(others.items())
            own = dict.fromkeys(kernels, declared) if target["dtypes"] is None else target["dtypes"]
            target["dtypes"] = {
                of: [each for each in own.get(of, ()) if each in declared and registry.may_have(of, each)]
                for of in dict.fromkeys((*kernels, *own))
            }
        return {"targets": found}

    def open(self, descriptors: list[int], backend: str, target: str, threads: int) -> dict[str, Any]:
        """Open the target on which everything else runs."""
        self._backend = backend
        self._device = plugins.checked_device(registry.backend(backend).open(target, threads))
        self._device.profiled = True
        call.share(backend, target, threads, self._device)
        return {"processes": list(self._device.processes)}

    def load(self, descriptors: list[int], arena: int, capacities: list[int], outputs: int) -> dict[str, Any]:
        """Attach an arena's memory, or attach it anew. The inputs cannot be written in this process."""
        if arena in self._arenas:
            self.unload(descriptors, arena)
        inputs = len(capacities) - outputs
        self._arenas[arena] = [
            SharedMemory.attach(descriptor, count, writable=at >= inputs)
            for at, (descriptor, count) in enumerate(zip(descriptors, capacities, strict=True))
        ]
        return {}

    def unload(self, descriptors: list[int], arena: int) -> dict[str, Any]:
        """Release an arena's memory."""
        self._copies.pop(arena, None)
        for memory in self._arenas.pop(arena):
            memory.close()
        return {}

    def prepare(self, descriptors: list[int], kernel: str, variant: str, dtype: str) -> dict[str, Any]:
        """Compile a kernel. Returns the seconds that it took, whether it had been kept, and facts about the device.

        Raises BackendUnavailable for a dtype that the source does not have.
        """
        text: KernelText = registry.kernel_texts(kernel, self._backend)[variant]
        taken = registry.dtypes(text)
        if dtype not in taken:
            refused = f"{kernel} of {self._backend} takes {listed(taken)}, not {dtype}"
            raise BackendUnavailable(refused, "choose another")
        begin = perf_counter()
        with kernel_store.watched() as found:
            launch = plugins.checked_launch(self._device.prepare(text, np.dtype(dtype)))
        seconds, device = perf_counter() - begin, self._device
        self._launches[kernel, variant, dtype] = launch
        call.share_launch(device, text, np.dtype(dtype), launch)
        return {
            "seconds": seconds,
            "kept": bool(found) and all(found),
            "note": device.note,
            "on_cpu": bool(device.on_cpu),  # a plug-in's value may be NumPy's, which JSON does not take
            "obeys_threads": bool(device.obeys_threads),
            "cache_bytes": int(device.cache_bytes),
            "deterministic": bool(device.deterministic) and not text.in_any_order,
        }

    def first_launch(self, descriptors: list[int], **placed: Any) -> dict[str, Any]:
        """Launch a kernel on uploaded data. Returns the seconds until it has ended, and those to place arrays before.

        At a small shape these are what it takes to compile for sizes, if that is done.
        """
        case = self._placed(**placed)
        begin = perf_counter()
        self._place_once(case)
        placing = perf_counter() - begin
        (launched,) = self._launches_on(case, 1)
        return {"seconds": launched.clock, "placing": placing}

    def remark(self, descriptors: list[int], **placed: Any) -> dict[str, Any]:
        """What a device has to say of a kernel at the end."""
        case = self._placed(**placed)
        return {"remark": self._device.remark(case.launch, case.sizes, case.arrays())}

    def ceiling(self, descriptors: list[int], dtype: str | None) -> dict[str, Any]:
        """The device's ceiling: FLOP/s in a dtype, or bytes a second if the dtype is None."""
        return {"rate": self._device.bandwidth() if dtype is None else self._device.peak(np.dtype(dtype))}

    def run(self, descriptors: list[int], **placed: Any) -> dict[str, Any]:
        """Run a kernel once for a check. Guard zones, inputs and the outputs' NaN go to the device and back.

        A device that computes in the caller's memory cannot write to the inputs. Any other device gets copies of them,
        with the same alignment.

        Returns as `wrong` a fault that the outputs do not show, or None.
        """
        case, device = self._placed(**placed), self._device
        every = case.with_zones()
        inputs, outputs = every[: -case.outputs], every[-case.outputs :]
        in_place = isinstance(device, HostDevice)
        given = inputs if in_place else [(page_aligned_copy(memory), first) for memory, first in inputs]
        arrays = [memory[first:] for memory, first in (*given, *outputs)]
        buffers = device.place(case.launch, case.sizes, arrays, outputs=case.outputs, filled=True)
        try:
            _timed_launch(device, case, buffers)
            for buffer, array in zip(buffers, arrays, strict=True):
                device.download(buffer, array)
        finally:
            for buffer in buffers:
                device.release(buffer)
        unchanged = in_place or all(
            same_bits(now, before).all() for (now, _), (before, _) in zip(given, inputs, strict=True)
        )
        return {"wrong": None if unchanged else "it changed an input"}

    def sample(
        self,
        descriptors: list[int],
        warm_up: int,
        calls: int,
        repetitions: int,
        poisoned: bool,
        cold: bool,
        **placed: Any,
    ) -> dict[str, Any]:
        """Take one sample: the phases of `calls` whole calls, then `repetitions` launches on the buffers of the last.

        The phases are those of the call that takes the median time. The kernel's time is the median of the repetitions.
        Without repetitions, it is the launch of the last call. The result of the last launch is downloaded to the
        case's output. Flushes are in no figure.

        warm_up: the number of uncounted launches before. While this process was stopped, others filled the caches.
        calls: an odd number.
        poisoned: whether the output is uploaded first, with its NaN. Memory from a device's allocator may hold an
            earlier result.
        cold: whether caches are flushed before each call. If the upload moves data, they are flushed after it too.
        """
        case = self._placed(**placed)
        self._place_once(case)
        self._launches_on(case, warm_up)
        move_apart()
        calls_before = [self._whole_call(case, 0, poisoned=poisoned, cold=cold)[0] for _ in range(calls - 1)]
        last, launches = self._whole_call(case, repetitions, poisoned=poisoned, cold=cold)
        by_time = sorted([*calls_before, last], key=lambda phases: phases["end_to_end"])
        return {**by_time[calls // 2], "drain": last["drain"], **_medians(launches)}

    def _whole_call(
        self, case: Placed, repetitions: int, *, poisoned: bool, cold: bool
    ) -> tuple[dict[str, float], list[Launched]]:
        """The phases of one call, and its launch, or the repeated launches between its download and its release.

        `drain` is the time of the last download minus that of the download after a single launch. With a wait that does
        not wait, the remaining work ends in the last download.
        """
        device = self._device
        arrays = case.arrays()
        if cold:
            flush(device)
        begin = perf_counter()
        buffers = device.place(case.launch, case.sizes, arrays, outputs=case.outputs, filled=poisoned)
        results = list(zip(buffers, arrays, strict=True))[-case.outputs :]
        uploaded = perf_counter()
        if cold and not isinstance(device, HostDevice):
            flush(device)
        launching = perf_counter()
        launches = [_timed_launch(device, case, buffers)]
        computed = perf_counter()
        for result in results:
            device.download(*result)
        downloaded = perf_counter()
        drain = 0.0
        if repetitions:
            launches = [_timed_launch(device, case, buffers) for _ in range(repetitions)]
            repeated = perf_counter()
            for result in results:
                device.download(*result)
            drain = (perf_counter() - repeated) - (downloaded - computed)
        releasing = perf_counter()
        for buffer in buffers:
            device.release(buffer)
        released = perf_counter()
        phases = {
            "upload": uploaded - begin,
            "download": downloaded - computed,
            "release": released - releasing,
            "end_to_end": uploaded - begin + downloaded - launching + released - releasing,
            "drain": drain,
        }
        return phases, launches

    def sample_statement(
        self,
        descriptors: list[int],
        statement: str,
        warm_up: int,
        repetitions: int,
        poisoned: bool,
        **placed: Any,
    ) -> dict[str, Any]:
        """The mean seconds of a statement over `a`, `b` and so on: over `repetitions` runs after `warm_up` others.

        Its arrays are copies in ordinary memory. No code of ours runs between it and the clock: a call may take only a
        tenth of a microsecond. `poisoned` fills its outputs with NaN first, and copies the results to the case's.
        """
        case = self._placed(**placed)
        arrays = self._copies_of(placed["arena"], statement, case, placed["kernel"])
        outputs = arrays[-case.outputs :]
        if poisoned:
            for output in outputs:
                output.fill(number_format(output.dtype).poison)
        names = dict(zip(ascii_lowercase, arrays, strict=False))
        timer = Timer(statement, globals={"np": np, "pb": py_backends} | names)
        timer.timeit(warm_up)
        move_apart()
        seconds = timer.timeit(repetitions) / repetitions
        if poisoned:
            for place, output in zip(case.arrays()[-case.outputs :], outputs, strict=True):
                place[...] = output.reshape(-1)
        return {"seconds": seconds}

    def _copies_of(self, arena: int, statement: str, case: Placed, kernel: str) -> list[Array]:
        """The arrays of a statement. Small ones are kept as long as the arena.

        Large ones are not kept: those of a dozen workers would fill the memory, and only one worker runs at a time.
        """
        kept = self._copies.setdefault(arena, {})
        if statement in kept:
            return kept[statement]
        shapes = registry.problem(kernel).shapes(case.sizes)
        made = [np.array(a).reshape(shape) for a, shape in zip(case.arrays(), shapes, strict=True)]
        if sum(array.nbytes for array in made) <= _MOST_KEPT:
            kept[statement] = made
        return made

    def _launches_on(self, case: Placed, count: int) -> list[Launched]:
        """Launch a kernel `count` times on a case. The results are not checked."""
        if not count:
            return []
        device = self._device
        buffers = device.place(case.launch, case.sizes, case.arrays(), outputs=case.outputs)
        launches = [_timed_launch(device, case, buffers) for _ in range(count)]
        for buffer in buffers:
            device.release(buffer)
        return launches

    def _place_once(self, case: Placed) -> None:
        """Place arrays at sizes that are new to a launch, in no figure: a device may compile for them."""
        known = id(case.launch), *case.sizes
        if isinstance(self._device, HostDevice) or known in self._known:
            return
        for buffer in self._device.place(case.launch, case.sizes, case.arrays(), outputs=case.outputs):
            self._device.release(buffer)
        self._known.add(known)

    def _placed(
        self, arena: int, kernel: str, variant: str, dtype: str, sizes: list[Any], spans: list[list[int]]
    ) -> Placed:
        where, problem, of_run = [Span(*each) for each in spans], registry.problem(kernel), np.dtype(dtype)
        return Placed(
            self._arenas[arena],
            where,
            problem.rounded(sizes, of_run),
            problem.array_dtypes(of_run),
            problem.outputs,
            self._launches[kernel, variant, dtype],
        )


class Placed(NamedTuple):
    """A kernel, and the case in an arena on which it runs: inputs, and then as many outputs."""

    memory: list[SharedMemory]
    spans: list[Span]
    sizes: tuple[Any, ...]
    dtypes: Sequence[np.dtype[Any]]
    outputs: int
    launch: Launch

    def arrays(self) -> list[Array]:
        """The arrays without their zones."""
        parts = zip(self.memory, self.spans, self.dtypes, strict=True)
        return [memory.bytes[at.first : at.first + at.size].view(dtype) for memory, at, dtype in parts]

    def with_zones(self) -> list[tuple[Array, int]]:
        """For each array, its memory up to the end of its zone, and the element at which the array begins."""
        parts = zip(self.memory, self.spans, self.dtypes, strict=True)
        return [(memory.bytes[: at.end].view(dtype), at.first // dtype.itemsize) for memory, at, dtype in parts]


class Launched(NamedTuple):
    """The seconds of one launch: by the clock, until its wait ended, and by the device's events."""

    clock: float
    events: float | None
    communication: Communication | None


def _timed_launch(device: Device, case: Placed, buffers: list[Any]) -> Launched:
    launch, sizes = case.launch, case.sizes
    begin = perf_counter()
    launch(buffers, sizes)
    device.wait()
    return Launched(perf_counter() - begin, device.event_seconds(), device.communication())


def _medians(launches: Sequence[Launched]) -> dict[str, Any]:
    """The medians over launches. `kernel` is by events if there are any, and then `clock` is by the clock.

    Launches on ranks add their communication.
    """
    clock = median(launched.clock for launched in launches)
    events = [launched.events for launched in launches if launched.events is not None]
    told = [launched.communication for launched in launches if launched.communication is not None]
    return {
        "kernel": max(_SHORTEST, median(events)) if events else clock,
        "clock": clock if events else None,
        "together": sum(launched.clock for launched in launches),
        **(_communicated(told) if told else {}),
    }


def _communicated(launches: Sequence[Communication]) -> dict[str, Any]:
    """The communication of ranks in one launch. Each figure is a median over the launches."""
    return {
        "communicating": median(each.seconds for each in launches),
        "bytes_sent": launches[-1].bytes_sent,
        "communicating_by_rank": [
            median(rank) for rank in zip(*(each.seconds_by_rank for each in launches), strict=False)
        ],
        "kernel_by_rank": [median(rank) for rank in zip(*(each.kernel_by_rank for each in launches), strict=False)],
    }


if __name__ == "__main__":
    serve(Session())
