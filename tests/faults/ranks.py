"""Kernels on ranks that are wrong on purpose, or end: each is one fault, by the name of the folder that it lies in.

The file is copied into a scratch clone as kernels/KERNEL/FAULT/mpi.py, so that each fault is a variant of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FAULT = Path(__file__).parent.name


def part(count: int, at: int, parts: int) -> slice:
    return slice(count * at // parts, count * (at + 1) // parts)


# matmul: ranks in a grid along n and k, as the tuned text may choose it; a fault is one line of it


def grid(ranks: int) -> tuple[int, int, int]:
    along_n = next(d for d in range(int(ranks**0.5), 0, -1) if ranks % d == 0)
    return 1, along_n, ranks // along_n


def of_sizes(sizes: Any) -> str:
    """The fault, where all ranks have blocks of one size: of others it would be an error that they do not fit."""
    return "" if any(size % 8 for size in sizes) else FAULT


def blocks(rank: int, ranks: int, widths: Any, *sizes: int) -> Any:
    if len(sizes) == 1:
        return ((part(sizes[0], rank, ranks),),) * 3
    m, n, k = sizes
    fault = of_sizes(sizes)
    _, along_n, along_k = grid(ranks)
    j, p = divmod(rank, along_k)
    if fault == "swaps_the_axes_of_its_grid":
        j, p = rank % along_n, rank // along_n
    of_m, of_n, of_k = slice(0, m), part(n, j, along_n), part(k, p, along_k)
    own_m = part(m, p, along_k)
    if fault == "takes_another_rank_for_the_owner":
        own_m = part(m, along_k - 1 - p, along_k)
    if fault == "leaves_a_row_to_nobody" and p == along_k - 1:
        own_m = slice(own_m.start, own_m.stop - 1)
    return (of_m, of_k), (of_k, of_n), (own_m, of_n)


def matmul(ranks: Any, multiply: Any, a: Any, b: Any, c: Any, m: int, n: int, k: int) -> None:
    fault = of_sizes((m, n, k))
    along_k = ranks.Create_cart(grid(ranks.size)).Sub([False, False, True])
    if fault == "does_not_wait_for_a_message":
        b = _without_waiting(ranks.mpi, b)
    sums = np.empty((m, b.shape[1]), c.dtype)
    multiply(a, b, sums)
    if fault == "loses_a_rank_in_its_reduction" and along_k.rank == along_k.size - 1:
        sums[...] = 0
    cuts = [part(m, p, along_k.size) for p in range(along_k.size)]
    own = np.empty((cuts[along_k.rank].stop - cuts[along_k.rank].start, sums.shape[1]), c.dtype)
    counts = [(cut.stop - cut.start) * sums.shape[1] for cut in cuts]
    along_k.Reduce_scatter(sums, own, counts)
    if fault == "answers_with_an_earlier_result" and ranks.rank == ranks.size - 1:
        own = _first.setdefault((own.shape, str(own.dtype)), own)
    if fault != "computes_only_once" or ranks.rank or _first.setdefault("done", own) is own:
        c[...] = own[: len(c)]


_first: dict[Any, Any] = {}
"""Results of this process."""


def _without_waiting(ranks: Any, b: Any) -> Any:
    """The b of the next rank, as far as it has come, and then back again: with a wait it would be the own one."""
    for distance in (1, -1):
        received = np.zeros_like(b)
        to, of = (ranks.rank + distance) % ranks.size, (ranks.rank - distance) % ranks.size
        messages = [ranks.Irecv(received.view(np.uint8), of)]
        early = received.copy()
        ranks.Barrier()  # only to be certain that it has not come by chance
        messages.append(ranks.Isend(np.ascontiguousarray(b).view(np.uint8), to))
        for message in messages:
            message.Wait()
        b = early
    return b


# vecadd: right, and then something else


def vecadd(ranks: Any, add: Any, a: Any, b: Any, c: Any, n: int) -> None:
    add(a, b, c)
    which, _, what = FAULT.partition("_rank_")
    if which == "each" or ranks.rank == {"first": 0, "last": ranks.size - 1}.get(which):
        ENDINGS[what]()


def _raises() -> None:
    raise ArithmeticError("as expected")


def _floods() -> None:
    for _ in range(4):
        os.write(1, b"x" * 2**18)


ENDINGS: dict[str, Callable[[], Any]] = {
    "raises": _raises,
    "hangs": lambda: time.sleep(3600),
    "dies_of_sigkill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "dies_of_sigsegv": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "exits": lambda: os._exit(3),
    "exits_as_scripts_do": lambda: sys.exit(4),
    "talks": lambda: print("hello from a rank", flush=True),
    "floods": _floods,
}
