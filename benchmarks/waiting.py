"""A worker whose launches wait, once they have ended, for a share of the time that they took.

So a row is slower by a known factor. The environment names the share.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from py_backends.contract import Buffer, Launch
from py_backends.workers.serve import serve
from py_backends.workers.session import Session

SHARE = "PY_BACKENDS_BENCHMARKS_WAIT"
"""The variable that names the share."""


class WaitingSession(Session):
    """A worker's session, for devices that compute before a launch returns."""

    def prepare(self, descriptors: list[int], kernel: str, variant: str, dtype: str) -> dict[str, Any]:
        """Compile a kernel as any worker does. Each launch of it waits."""
        answer = super().prepare(descriptors, kernel, variant, dtype)
        launch = self._launches[kernel, variant, dtype]
        self._launches[kernel, variant, dtype] = _waiting(launch, float(os.environ[SHARE]))
        return answer


def _waiting(launch: Launch, share: float) -> Launch:
    def launch_and_wait(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
        begin = perf_counter()
        launch(buffers, sizes)
        end = (now := perf_counter()) + share * (now - begin)
        while perf_counter() < end:
            pass

    return launch_and_wait


if __name__ == "__main__":
    serve(WaitingSession())
