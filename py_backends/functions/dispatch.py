"""What a call asks for: by which of a backend's targets and sources it is computed, and in which dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from py_backends import folders, registry
from py_backends.contract import Target
from py_backends.errors import BackendUnavailable
from py_backends.functions import this_process
from py_backends.functions.targets import targets_of
from py_backends.kernel_text import KernelText
from py_backends.limits import MOST_THREADS, whole_number

Asked = tuple[str, str, str | None, str | None, int | None, type]
"""The arguments of a caller: kernel, backend, variant, target, threads, and the type of threads."""
Choice = tuple[Target, KernelText]
"""The target and the source of a call."""
_dtypes: dict[tuple[str, str, str | None, str | None], tuple[np.dtype[Any], ...]] = {}
"""The dtypes of a kernel by backend, variant and target. None stands for any variant or target."""


def _forget(kernel: str) -> None:
    for key in [key for key in _dtypes if key[0] == kernel]:
        del _dtypes[key]


folders.FORGET.append(_forget)
_targets: dict[str, list[Target]] = {}
"""By backend, once one of them is available."""
_Value = TypeVar("_Value")


def dtypes_taken(asked: Asked) -> tuple[np.dtype[Any], ...]:
    """The dtypes that a backend takes for a request. Raises ValueError if it has no such kernel, variant or target."""
    kernel, backend, variant, target, *_ = asked
    dtypes = lookup(_dtypes, (kernel, backend, variant, target))
    if dtypes is None:
        dtypes = _dtypes[kernel, backend, variant, target] = tuple(map(np.dtype, choices_by_dtype(asked)))
    return dtypes


def choices_by_dtype(asked: Asked) -> dict[str, list[Choice]]:
    """By dtype, the targets that take it, each with a source, in the order in which calls prefer them.

    Raises ValueError if a named target has no such kernel.
    """
    kernel, backend, variant, target, *_ = asked
    texts, targets = list(_texts(kernel, backend, variant).values()), _candidates(backend, target)
    every = [((each, text), _dtypes_on(each, text)) for each in targets for text in texts]
    names = dict.fromkeys(name for text in texts for name in registry.dtypes(text))
    choices = {name: [choice for choice, able in every if name in able] for name in names}
    if not any(choices.values()):
        raise ValueError(f"{whom(asked)} has no {kernel}")
    return {name: of_dtype for name, of_dtype in choices.items() if of_dtype}


def chosen(asked: Asked, choices: Mapping[str, list[Choice]], dtype: str) -> Choice:
    """Where a dtype is computed. One that nothing takes may go anywhere: who looks at it says so."""
    able = choices.get(dtype) or list(chain(*choices.values()))
    first = first_there(able)
    if first is None:
        missing, _ = able[0]
        named = " ".join(filter(None, (asked[1], asked[3])))
        raise BackendUnavailable(f"{named} is not available: {missing.reason}", missing.fix)
    return first


def first_there(choices: Iterable[Choice]) -> Choice | None:
    """The first choice with an available target. Emulated targets only serve for checks in workers, not for callers."""
    return next((each for each in choices if each[0].available and not each[0].emulated), None)


def thread_count(asked: Asked) -> int:
    """The number of threads: all CPUs where none is given. Raises ValueError for what is no such number."""
    count = asked[4]
    return _all_cpus() if count is None else whole_number("threads", count, 1, MOST_THREADS)


def whom(asked: Asked) -> str:
    """The backend, and the target if one is named."""
    _, backend, _, target, *_ = asked
    return backend if target is None else f"{backend} on {target}"


def lookup(table: Mapping[Any, _Value], asked: Any) -> _Value | None:
    """What a table has for what was asked; None, too, where that is no possible key."""
    try:
        return table.get(asked)
    except TypeError:  # a list, for instance, is no name of anything; what looks closer has the words for it
        return None


def _dtypes_on(target: Target, text: KernelText) -> list[str]:
    """The number formats in which a source runs on a target that was probed here."""
    taken = target if target.dtypes is not None else None
    return [name for name in registry.dtypes(text) if name in registry.dtypes(text, taken)]


def _texts(kernel: str, backend: str, variant: str | None) -> dict[str, KernelText]:
    """The sources of a kernel for a backend, or that of a variant. Raises ValueError if there is none."""
    texts = registry.kernel_texts(kernel, registry.known_backend(backend))
    if not texts:
        raise ValueError(f"{backend} has no {kernel}")
    if variant is None:
        return texts
    return {variant: texts[registry.known(variant, texts, f"variant of {backend}")]}


def _candidates(backend: str, name: str | None) -> list[Target]:
    """The target of a backend with this name, or all of its targets, missing ones included."""
    targets = _targets.get(backend) or list(map(this_process.usable, targets_of(backend)))
    if any(target.available for target in targets):  # what is missing may be installed meanwhile
        _targets[backend] = targets
    if name is None:
        return targets
    if isinstance(name, str) and name not in [target.name for target in targets]:
        targets = list(map(this_process.usable, targets_of(backend, [name])))
    registry.known(name, [target.name for target in targets], f"target of {backend}")
    return [target for target in targets if target.name == name]


@cache
def _all_cpus() -> int:
    from py_backends.system import machine

    return machine.cpus()
