"""How a contender is timed, within its own process: each way gives the seconds of one call at one case.

The statement that is timed is the text that a user would write, run by `timeit`, so that nothing of ours adds to a
call of a tenth of a microsecond.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from time import perf_counter
from timeit import Timer
from typing import Any

import numpy as np

import py_backends as pb
from py_backends import _discovery
from py_backends._contract import Array, Problem

_COPIED_BYTES = 4 * 2**30
"""Of the copy on a GPU whose bandwidth is the ceiling there: far beyond its caches."""


class Way(ABC):
    """One contender at one case. `arrays` are the inputs, then the output, in ordinary memory of NumPy's."""

    @abstractmethod
    def seconds(self, repetitions: int) -> float:
        """Seconds of one call, the mean over `repetitions` calls in a row."""

    def finish(self) -> None:  # noqa: B027  # most compute in the output array itself
        """Bring the result of the last call into the output array."""


class Statement(Way):
    """A statement over `a`, `b` and `c`."""

    def __init__(self, statement: str, arrays: Sequence[Array], **names: Any) -> None:
        self._timer = Timer(statement, globals=dict(zip("abc", arrays, strict=True)) | names)

    def seconds(self, repetitions: int) -> float:
        return self._timer.timeit(repetitions) / repetitions


class Library(Statement):
    """NumPy's own function, called as its users do: the yardstick."""

    def __init__(self, problem: Problem, arrays: Sequence[Array]) -> None:
        function = {"matmul": np.matmul, "vecadd": np.add}[problem.name]
        super().__init__("run(a, b, out=c)", arrays, run=function)


class Call(Statement):
    """`pb.matmul(a, b, out=c, backend=...)`, the call included; what is None is not passed."""

    def __init__(self, problem: Problem, arrays: Sequence[Array], **options: Any) -> None:
        given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
        super().__init__(f"run(a, b, out=c{given})", arrays, run=getattr(pb, problem.name))


class Kernel(Way):
    """A launch and the wait for it, on buffers that are on the device already."""

    def __init__(
        self, problem: Problem, arrays: Sequence[Array], sizes: Sequence[int], backend: str, target: str, threads: int
    ) -> None:
        self._device = device = _discovery.backend(backend).open(target, threads)
        text = next(iter(_discovery.kernel_texts(problem.name, backend).values()))
        launch = device.prepare(text, arrays[0].dtype)
        *inputs, self._output = [array.reshape(-1) for array in arrays]
        self._buffers = [*map(device.upload, inputs), device.allocate(self._output)]
        names = {"launch": launch, "buffers": self._buffers, "sizes": sizes, "wait": device.wait}
        self._timer = Timer("launch(buffers, sizes)\nwait()", globals=names)

    def seconds(self, repetitions: int) -> float:
        return self._timer.timeit(repetitions) / repetitions

    def finish(self) -> None:
        self._device.download(self._buffers[-1], self._output)


class Arithmetic(Way):
    """The arithmetic ceiling: what the case's operations would take as multiply-adds in registers."""

    def __init__(self, problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], threads: int, target: str) -> None:
        from py_backends.harness.ceilings import MultiplyAdds

        self._flops = problem.flops(sizes)
        self._ceiling = MultiplyAdds(dtype, threads, target)

    def seconds(self, repetitions: int) -> float:
        return self._flops / self._ceiling.flops_per_second()


class Memory(Way):
    """The memory ceiling: what vecadd of the case's size takes with non-temporal stores."""

    def __init__(self, problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], threads: int) -> None:
        from py_backends.harness.ceilings import STREAMED, Bandwidth

        self._bytes = problem.bytes(sizes, dtype)
        self._ceiling = Bandwidth(STREAMED, dtype, threads, self._bytes)

    def seconds(self, repetitions: int) -> float:
        return self._bytes / self._ceiling.bytes_per_second(repetitions)


class DeviceCopy(Way):
    """The memory ceiling of a GPU: what the case's bytes would take as part of a copy of 4 GiB within its memory."""

    def __init__(self, problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any]) -> None:
        import cupy

        self._bytes = problem.bytes(sizes, dtype)
        self._cupy = cupy
        self._from = cupy.zeros(_COPIED_BYTES, np.uint8)
        self._to = cupy.empty_like(self._from)

    def seconds(self, repetitions: int) -> float:
        begin = perf_counter()
        for _ in range(repetitions):
            self._to.data.copy_from_device_async(self._from.data, _COPIED_BYTES)
        self._cupy.cuda.runtime.deviceSynchronize()
        moved = 2 * _COPIED_BYTES * repetitions  # read and written
        return self._bytes / moved * (perf_counter() - begin)
