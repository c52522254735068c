"""What a rank sends, copies and adds in an exchange, by the algorithm that MPICH takes for so many ranks and bytes.

The algorithms and their costs: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
MPICH, International Journal of High Performance Computing Applications 19 (2005), sections 3 and 4. At which size one
algorithm follows another is the default of MPICH's variables MPIR_CVAR_ALLGATHER_SHORT_MSG_SIZE and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_ALLGATHER_SHORT, _ALLGATHER_LONG = 81920, 524288
"""Bytes of the whole. Below the first, Bruck's algorithm; below the second, recursive doubling where the number of
ranks is a power of two; else a ring."""
_REDUCE_SCATTER_LONG = 524288
"""Bytes of all sums. Below it, recursive halving; else pairs, one after the other."""
_ALLREDUCE_SHORT = 2048
"""Bytes of the sums. Up to it, recursive doubling; above it, a reduce-scatter and an allgather (Rabenseifner)."""
_AT_ONCE = 32
"""The most messages that a rank of an all-to-all sends at once: MPIR_CVAR_ALLTOALL_THROTTLE."""


@dataclass(frozen=True)
class Round:
    """Messages that a rank sends at once, and receives as many.

    size: bytes of all of them together.
    messages: how many they are.
    times: how many such rounds follow one another. Each waits for the one before.
    """

    size: float
    messages: int = 1
    times: int = 1


@dataclass(frozen=True)
class Traffic:
    """What one rank does in an exchange.

    rounds: of messages.
    copied: bytes that it copies in its own memory.
    strided: bytes of messages that do not lie in one piece, so that they are gathered or spread by rows.
    added: bytes of the numbers that it adds to others; half of theirs where it adds one number to all.
    """

    rounds: tuple[Round, ...] = ()
    copied: float = 0
    strided: float = 0
    added: float = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.rounds + other.rounds,
            self.copied + other.copied,
            self.strided + other.strided,
            self.added + other.added,
        )


def allgather(blocks: Sequence[int]) -> Traffic:
    """Every rank gets the blocks of all, of so many bytes each. In a ring the largest block sets the pace."""
    ranks, whole = len(blocks), sum(blocks)
    if ranks == 1 or whole == 0:
        return Traffic()
    if whole < _ALLGATHER_LONG and _is_power_of_two(ranks):
        return Traffic(_doubling(ranks, whole / ranks))
    if whole < _ALLGATHER_SHORT:
        return Traffic(_doubling(ranks, whole / ranks), copied=whole)
    return Traffic((Round(max(blocks), times=ranks - 1),))


def reduce_scatter(shares: Sequence[int]) -> Traffic:
    """Every rank gets its share of the sums, of so many bytes each."""
    ranks, whole = len(shares), sum(shares)
    if ranks == 1 or whole == 0:
        return Traffic()
    if whole >= _REDUCE_SCATTER_LONG:
        return Traffic((Round(max(shares), times=ranks - 1),), added=max(shares) * (ranks - 1))
    in_halves = _power_of_two_within(ranks)
    rounds = _doubling(in_halves, whole / in_halves)
    sent = sum(each.size for each in rounds)
    return Traffic(rounds, added=sent) + _pairs_first(ranks, whole, whole / ranks)


def allreduce(ranks: int, size: int) -> Traffic:
    """Every rank gets the sums of all, of so many bytes together."""
    if ranks == 1 or size == 0:
        return Traffic()
    in_pairs = _power_of_two_within(ranks)
    if size <= _ALLREDUCE_SHORT:
        doubled = in_pairs.bit_length() - 1
        return Traffic((Round(size, times=doubled),), added=size * doubled) + _pairs_first(ranks, size, size)
    rounds = _doubling(in_pairs, size / in_pairs)
    sent = sum(each.size for each in rounds)
    return Traffic(rounds * 2, added=sent) + _pairs_first(ranks, size, size)


def exscan(rank: int, ranks: int, size: int) -> Traffic:
    """Every rank gets the sums of those before it, of so many bytes together.

    It adds what it gets to what it has, and what comes from before also to its result.
    """
    rounds = partners(rank, ranks)
    if rounds == 0 or size == 0:
        return Traffic()
    return Traffic((Round(size, times=rounds),), copied=size, added=size * (rounds + rank.bit_count()))


def partners(rank: int, ranks: int) -> int:
    """With how many others a rank exchanges: those whose numbers differ from its own in one binary digit."""
    return sum(rank ^ 1 << digit < ranks for digit in range((ranks - 1).bit_length()))


def alltoall(ranks: int, size: int) -> Traffic:
    """Every rank sends each other one a part of so many bytes."""
    if ranks == 1 or size == 0:
        return Traffic()
    groups = -(-(ranks - 1) // _AT_ONCE)
    return Traffic((Round(size / groups, messages=round((ranks - 1) / groups), times=groups),))


def _doubling(ranks: int, block: float) -> tuple[Round, ...]:
    """Rounds in which a rank has one block, then two, four and so on, until it has those of all.

    Halving what it has takes the same messages, the other way round. If the ranks are no power of two, the last round
    is shorter.
    """
    have, rounds = 1, []
    while have < ranks:
        more = min(have, ranks - have)
        rounds.append(Round(more * block))
        have += more
    return tuple(rounds)


def _pairs_first(ranks: int, before: float, after: float) -> Traffic:
    """If the ranks are no power of two, some give another one what they have, and get their result in the end."""
    if _is_power_of_two(ranks):
        return Traffic()
    return Traffic((Round(before), Round(after)), added=before)


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _power_of_two_within(number: int) -> int:
    """The largest one that is no larger than a number."""
    return 1 << (number.bit_length() - 1)
