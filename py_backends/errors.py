"""The errors of a request. Each says in one line what is wrong, and what to do."""

from __future__ import annotations

import difflib
import errno
import operator
from collections.abc import Sequence
from typing import Any


class WithFix(Exception):
    """An error that says why, and how to fix it: `reason`, and `fix` if there is one."""

    def __init__(self, reason: str, fix: str | None = None) -> None:
        super().__init__(f"{reason}; {fix}" if fix else reason)
        self.reason = reason
        self.fix = fix


class BackendUnavailable(WithFix, RuntimeError):
    """A backend or target is not available. Says why, and how to get it."""


class WrongRequest(ValueError):
    """An invalid request: an unknown name, or an impossible size or number."""


class BrokenKernel(WithFix, WrongRequest):
    """A package declares a kernel and does not contain a valid one. Says why, and how to fix it."""


class KernelFault(RuntimeError):
    """A kernel did what its device forbids, such as reading past an array: the device may be of no more use."""


def fix_of(error: BaseException) -> str | None:
    """What the user can do about an error of the system, where its own words do not say it."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return f"raise the limit of open files: ulimit -n {MOST_FILES}"
    return None


def listed(names: Sequence[str], word: str = "and") -> str:
    """Names as a sentence has them: "a", "a and b", "a, b and c"."""
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def hint(name: str, names: Sequence[str]) -> str:
    """What to take in place of an unknown name: the nearest one, whatever its case, or else all of them."""
    by_lower = {each.lower(): each for each in names}
    if near := difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5):
        return f"did you mean {by_lower[near[0]]!r}?"
    return f"there is only {names[0]!r}" if len(names) == 1 else f"there are {', '.join(names)}"


def in_one_line(text: str, most: int | None = None) -> str:
    """The lines that are not empty as one line: the first of them, or all."""
    return " / ".join([line.strip() for line in text.splitlines() if line.strip()][:most])


def shown(value: Any) -> str:
    """What a caller gave, in one short line."""
    try:
        text = in_one_line(repr(value))
    except Exception:  # noqa: BLE001  # an int of thousands of digits, or a class that has no words for itself
        return f"a value of the type {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


_LONGEST_SHOWN = 100
MOST_FILES = 4096
"""Descriptors that are enough for a comparison of any size."""
MOST_THREADS = 2**12
"""More than any machine has, and fewer than make a thread library end the process."""
LARGEST_SEED = 2**63 - 1


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """`value` as an int; WrongRequest, with one clear line, where it is none or out of range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise WrongRequest(f"{name} must be a whole number, not {shown(value)}") from None
    if not least <= number <= most:
        raise WrongRequest(f"{name} must be from {least} to {most}, not {shown(number)}")
    return number
