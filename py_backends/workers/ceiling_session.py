"""The worker that measures this CPU's ceilings. `py_backends.harness.timed_ceilings` starts it."""

from __future__ import annotations

from typing import Any

import numpy as np

from py_backends.workers.ceilings import Bandwidth, Block, MultiplyAdds
from py_backends.workers.serve import serve


class Session:
    """The state of the worker: memory for the largest working set, and each ceiling from its first sample on."""

    def __init__(self) -> None:
        self._block: Block
        self._ceilings: dict[tuple[object, ...], MultiplyAdds | Bandwidth] = {}

    def open(self, descriptors: list[int], largest: int) -> dict[str, Any]:
        """Make room for working sets of up to `largest` bytes."""
        self._block = Block(largest)
        return {}

    def sample(
        self,
        descriptors: list[int],
        kind: str,
        dtype: str,
        threads: int,
        instruction_set: str,
        working_set: int | None,
    ) -> dict[str, Any]:
        """One sample of about 10 ms, in FLOP/s or bytes a second."""
        key = kind, dtype, threads, instruction_set, working_set
        if key not in self._ceilings:
            self._ceilings[key] = self._ceiling(*key)
        return {"rate": self._ceilings[key].sample()}

    def _ceiling(
        self, kind: str, dtype: str, threads: int, instruction_set: str, working_set: int | None
    ) -> MultiplyAdds | Bandwidth:
        if working_set is None:
            return MultiplyAdds(np.dtype(dtype), threads, instruction_set)
        return Bandwidth(kind, np.dtype(dtype), threads, working_set, self._block, instruction_set)


if __name__ == "__main__":
    serve(Session())
