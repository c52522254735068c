"""`cuda.tile` on NumPy, for `cutile.py`: see backend/_cutile_emulation.py. Its arrays are those of `cupy` here.

Only programs that this package starts find it in place of cuTile, and only if there is no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from py_backends.backend import _cutile_emulation
from py_backends.backend._cutile_emulation import *  # noqa: F403  # whatever it has


def launch(  # type: ignore[no-redef]  # with a stream before
    _: Any, grid: Sequence[int], kernel: Callable[..., None], arguments: Sequence[Any]
) -> None:
    """Run the blocks of a grid one after the other."""
    _cutile_emulation.launch(grid, kernel, [_cutile_emulation.Array(each.on_host) for each in arguments])
