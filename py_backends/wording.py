"""Words that messages share: names in a list, the nearest name, a value in one line."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

_LONGEST_SHOWN = 100


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
