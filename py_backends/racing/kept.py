"""Whether a function keeps results: it is called on inputs that differ from the timed ones in one value of each.

A race calls a function many times on the same inputs. Results that are kept for these make it look fast. Those that are
kept for an address are wrong as soon as other numbers lie there, and those for a few elements as soon as others change.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter

import numpy as np

from py_backends.contract import Array, Reference
from py_backends.errors import WrongResult
from py_backends.racing.form import Form
from py_backends.system.bits import page_aligned_copy

Call = Callable[[Sequence[Array]], tuple[Array, ...]]
_CHANGES, _MOST_QUICK, _ENOUGH = 7, 1, 3
"""All changed inputs but one have to show that results are kept: on a busy machine, any call may take long. An honest
function is let go by the second one. A wrong result is enough in three of them."""
_FACTOR, _LEAST = 5.0, 20e-6
"""How many times as long a call on others takes, at least, and how many seconds longer: memory that is new to the
caches explains less."""
_LONGEST, _MOST_BYTES = 0.05, 1 << 28
"""Seconds of a call, and bytes of inputs, above which nobody looks: what is kept is fast."""
_APART = 4
"""Bounds by which two right results may differ: twice one, which may have grown with what was changed."""
_ANSWERS, LONGEST_ANSWER = 3, 2.0
"""Changes for which the right answer is computed, and the seconds after which no other one is begun."""
_AGAIN, _MOST_SEEN = 64, 20
"""Further changes for who seems to keep results, and how many of them may show. Of half of a matrix 32 do, and more
than 20 in all but 1 of 600 draws. Of each seventh element 9 do, of each seventh one of two arrays 17."""


@dataclass(frozen=True)
class Inputs:
    """Arrays as a function gets them, which it cannot write to, and the memory in which we can."""

    memory: list[Array]
    given: list[Array]

    @classmethod
    def like(cls, arrays: Sequence[Array], forms: Sequence[Form]) -> Inputs:
        """The same numbers elsewhere, placed as those that are timed."""
        copies = (page_aligned_copy(form.kept(each).reshape(-1)) for form, each in zip(forms, arrays, strict=True))
        memory = [form.given(copy) for form, copy in zip(forms, copies, strict=True)]
        given = [each.view() for each in memory]
        for each in given:
            each.flags.writeable = False
        return cls(memory, given)

    def change(self, places: Sequence[int | None]) -> None:
        """Let one element of each array, and all that equal it, be as the next one.

        So sorted numbers stay sorted, indices valid, and a symmetric matrix symmetric.
        """
        for array, place in zip(self.memory, places, strict=True):
            if place is not None:
                flat = array.reshape(-1)
                equal = flat == flat[place]
                equal[place] = True  # NaN equals nothing
                flat[equal] = flat[place + 1]


@dataclass(frozen=True)
class Change:
    """One change of the inputs of a race, and what a right function gives then."""

    places: list[int | None]
    right: tuple[Array, ...]


def changes(right: Call, own: Sequence[Array], forms: Sequence[Form], results: Sequence[Form]) -> list[Change]:
    """Changes drawn by lot; none where nobody looks.

    results: the forms of what a right function gives for its own inputs.
    """
    candidates, found, begin = _candidates(own), list[Change](), perf_counter()
    if not candidates or sum(form.size * form.kept_as.itemsize for form in results) > _MOST_BYTES:
        return []
    for _ in range(_ANSWERS):
        places, other = _drawn(candidates), Inputs.like(own, forms)
        other.change(places)
        answer = _copied(right(other.memory))
        if [each.dtype for each in answer] == [form.dtype for form in results]:
            found.append(Change(places, answer))
        if perf_counter() - begin > LONGEST_ANSWER:
            break
    return found


def remark(
    name: str,
    call: Call,
    own: Sequence[Array],
    forms: Sequence[Form],
    references: Callable[[], Sequence[Reference]],
    answers: Callable[[], Sequence[Change]],
) -> str | None:
    """What to tell of a function that is far faster on the inputs of its race than on others; else None.

    own: those inputs, where it was timed. forms: theirs. references: gives what is right there.
    answers: gives changes of them for which it is known what is right.

    Raises WrongResult for one that gives an earlier result for other inputs. A function that fails on these, or gives
    any other result, may ask for more of them than we know, so it is not judged.
    """
    candidates = _candidates(own)
    if not candidates:
        return None
    try:
        found = _kept(partial(_called, call), own, forms, candidates, references, answers)
    except _Failed:
        return None
    if found in (_STALE, _UNSEEN):
        raise WrongResult(f"{name} gives an earlier result {found}")
    return found


_STALE = "where other numbers lie at the same addresses"
_UNSEEN = "for inputs of which a value of each was changed: it may keep results"


def _candidates(arrays: Sequence[Array]) -> list[Array]:
    """Where an element of each array differs from the next one; none where nobody looks, or nothing can be changed."""
    if sum(each.nbytes for each in arrays) > _MOST_BYTES:
        return []
    found = [np.flatnonzero(flat[1:] != flat[:-1]) for flat in (each.reshape(-1) for each in arrays)]
    return found if any(each.size for each in found) else []


def _drawn(candidates: Sequence[Array]) -> list[int | None]:
    return [int(random.choice(each)) if each.size else None for each in candidates]


class _Failed(Exception):
    """The function did."""


def _called(call: Call, inputs: Sequence[Array]) -> tuple[Array, ...]:
    try:
        return call(inputs)
    except Exception as error:
        raise _Failed from error


def _kept(
    call: Call,
    own: Sequence[Array],
    forms: Sequence[Form],
    candidates: Sequence[Array],
    references: Callable[[], Sequence[Reference]],
    answers: Callable[[], Sequence[Change]],
) -> str | None:
    """The remark, or where results are earlier ones. Calls on the own inputs and on others take turns."""
    if min(_timed(call, own)[0] for _ in range(2)) > _LONGEST:
        return None
    if _misses_changes(call, own, forms, candidates, references, answers()):
        return _UNSEEN
    usual, others, alive = [_timed(call, own)[0]], list[float](), list[Inputs]()
    quick, stale, may_be_stale = 0, 0, True
    for number in range(1, _CHANGES + 1):
        places = _drawn(candidates)
        other, same_place = Inputs.like(own, forms), Inputs.like(own, forms)
        alive += [other, same_place]  # so that no address comes twice
        other.change(places)
        call(own)  # so that code, and memory for results, is in the caches
        seconds, right = _timed(call, other.given)
        others.append(seconds)
        usual.append(min(_timed(call, own)[0] for _ in range(2)))  # the last inputs alone may be kept
        quick += not _far_longer(seconds, max(usual[-2:]))
        if may_be_stale:
            before, after = _before_and_after(call, same_place, places)
            may_be_stale = _same(before, after)
            stale += may_be_stale and _apart(after, right, references())
        if stale == _ENOUGH:
            return _STALE
        if quick > _MOST_QUICK and not (may_be_stale and number < _ENOUGH):
            return None
    factor = median(others) / max(median(usual), 1e-9)
    return f"its calls on the same inputs are {factor:,.0f} times as fast as one on others: it may keep results"


def _misses_changes(
    call: Call,
    own: Sequence[Array],
    forms: Sequence[Form],
    candidates: Sequence[Array],
    references: Callable[[], Sequence[Reference]],
    answers: Sequence[Change],
) -> bool:
    """Whether a function gives earlier results for other inputs, and one of them is wrong there.

    A right function may read a part of its inputs alone, such as a triangle of a symmetric matrix. So few changes may
    show in its results.
    """
    if not answers:
        return False
    gave, alive, wrong = {_digest(call(own)): _digest(own)}, list[Inputs](), False

    def changed(places: Sequence[int | None]) -> tuple[tuple[Array, ...], bool]:
        """What it gives, and whether it has given that for other inputs."""
        alive.append(Inputs.like(own, forms))
        alive[-1].change(places)
        results = _copied(call(alive[-1].given))
        inputs = _digest(alive[-1].memory)  # small ones, and those of few values, come again
        return results, gave.setdefault(_digest(results), inputs) != inputs

    for answer in answers:  # their addresses are not given back, so that none comes twice
        results, known = changed(answer.places)
        wrong = wrong or (known and _apart(results, answer.right, references()))
    if not wrong:
        return False
    seen = 0
    for _ in range(_AGAIN):
        seen += not changed(_drawn(candidates))[1]
        alive.pop()
        if seen > _MOST_SEEN:
            return False
    return True


def _digest(arrays: Sequence[Array]) -> int:
    return hash(tuple((each.shape, each.tobytes()) for each in arrays))


def _far_longer(seconds: float, usual: float) -> bool:
    return seconds > _FACTOR * usual and seconds > usual + _LEAST


def _before_and_after(call: Call, inputs: Inputs, places: Sequence[int | None]) -> tuple[tuple[Array, ...], ...]:
    """What a function gives before these inputs change where they lie, and after."""
    before = _copied(call(inputs.given))
    inputs.change(places)
    return before, _copied(call(inputs.given))


def _timed(call: Call, inputs: Sequence[Array]) -> tuple[float, tuple[Array, ...]]:
    begin = perf_counter()
    results = call(inputs)
    return perf_counter() - begin, _copied(results)


def _copied(results: Sequence[Array]) -> tuple[Array, ...]:
    """A function may give the same memory again."""
    return tuple(map(np.array, results))


def _same(some: Sequence[Array], others: Sequence[Array]) -> bool:
    """Whether two calls gave the same bits."""
    return [(each.shape, each.tobytes()) for each in some] == [(each.shape, each.tobytes()) for each in others]


def _apart(some: Sequence[Array], others: Sequence[Array], references: Sequence[Reference]) -> bool:
    """Whether two results of the same numbers differ by more than any order of sums explains."""
    return any(map(_one_apart, some, others, references))


def _one_apart(some: Array, other: Array, reference: Reference) -> bool:
    if some.shape != other.shape:
        return True
    if reference.bound is None:
        return some.tobytes() != other.tobytes()
    parts = [each.reshape(-1) for each in (some, other)]
    if some.dtype.kind == "c":  # two numbers each
        parts = [each.view(each.real.dtype) for each in parts]
    bound = np.where(np.isfinite(reference.value), reference.bound, np.inf).reshape(-1)
    if reference.overflow is not None:
        bound = np.where(reference.overflow.reshape(-1), np.inf, bound)
    with np.errstate(all="ignore"):
        distance = np.abs(parts[0].astype(np.float64) - parts[1].astype(np.float64))
        return bool((distance > _APART * bound).any())
