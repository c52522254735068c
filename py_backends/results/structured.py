"""Gives what JSON holds the types of Python. Nothing is converted: cattrs alone would make 3 of "3"."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")


def structured(content: Any, kind: type[T]) -> T:
    """Parsed JSON as a dataclass or TypedDict. Raises cattrs.ClassValidationError if a field is missing or wrong.

    A dataclass has no field that it does not name. A TypedDict keeps others as they are.
    """
    return _converter().structure(content, kind)


@cache
def _converter() -> Converter:
    # Imported here: only readers of results need this library.
    from cattrs import Converter

    def is_list(kind: Any) -> bool:
        return get_origin(kind) is list

    def structure_list(value: Any, kind: Any) -> list[Any]:
        return [made.structure(each, get_args(kind)[0]) for each in _of_type(value, list)]

    made = Converter()
    made.register_structure_hook_func(is_list, structure_list)
    for kind in (bool, int, float, str):
        made.register_structure_hook(kind, _of_type)
    return made


def _of_type(value: Any, kind: type) -> Any:
    """Return the value if it has that JSON type, else raise TypeError. Any number is a float.

    Whole numbers have 64 bits: no view could divide larger ones.
    """
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise TypeError("a whole number has more than 64 bits")
    return value
