"""The largest numbers that a request may have, and how a number is checked."""

from __future__ import annotations

import argparse
import math
import operator
from numbers import Real
from typing import Any

from py_backends.errors import WrongRequest
from py_backends.wording import shown

MOST_THREADS = 2**12
"""More than any machine has, and fewer than make a thread library end the process."""
LARGEST_SEED = 2**63 - 1
LARGEST_SIZE = 2**40
"""Of a dimension, in elements."""


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """`value` as an int; WrongRequest, with one clear line, where it is none or out of range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise WrongRequest(f"{name} must be a whole number, not {shown(value)}") from None
    if not least <= number <= most:
        raise WrongRequest(f"{name} must be from {least} to {most}, not {shown(number)}")
    return number


def real_number(name: str, value: Any) -> float:
    """`value` as a float; WrongRequest, with one clear line, where it is no finite number."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise WrongRequest(f"{name} must be a finite number, not {shown(value)}")
    return number


def tolerance(value: Any) -> float:
    """A tolerance as a float; WrongRequest, with one clear line, where it is no number from 0 to below 1."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not (real and 0 <= value < 1):
        raise WrongRequest(f"tolerance must be a number from 0 to below 1, not {shown(value)}")
    return float(value)


def seconds(text: str) -> float:
    """A time above 0, as an option has it. Raises argparse's error for others."""
    return _above_0(text, "seconds")


def gigabytes(text: str) -> float:
    """An amount of memory above 0, as an option has it. Raises argparse's error for others."""
    return _above_0(text, "gigabytes")


def _above_0(text: str, of: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"takes a number of {of} above 0, not {text!r}")
    return found
