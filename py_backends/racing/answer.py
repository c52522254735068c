"""The right answer of a race, computed in a process of its own: what runs there may hang, crash or end it.

`py_backends.racing.race` starts it as a worker, `python -m py_backends.racing.answer DESCRIPTOR`.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from py_backends.bounds import bounded, by_tolerance
from py_backends.contract import Array, Reference
from py_backends.errors import WrongRequest
from py_backends.racing import kept, travel
from py_backends.racing.folder import Race
from py_backends.racing.form import Form, arrays_of
from py_backends.results.check import check_outputs
from py_backends.system.bits import same_bits
from py_backends.wording import in_one_line
from py_backends.workers.serve import serve

INPUTS, REFERENCE = "inputs", "reference"
"""The functions of a file that are not raced."""
_LONGEST_REASON = 160
"""Characters. A library that is given arrays with errors may print them."""
_GIVE = "give a tolerance in its place, such as 1e-6, relative to the largest element of an output"


class Session:
    """What the process does: it looks at a file of functions, and computes the answer."""

    def look(self, descriptors: list[int], **asked: Any) -> dict[str, Any]:
        """Run a file, and write the inputs that it makes: see `_looked`."""
        return _refused_or(_looked, **asked)

    def answer(self, descriptors: list[int], **asked: Any) -> dict[str, Any]:
        """Compute the right answer, and write it: see `_answered`."""
        return _refused_or(_answered, **asked)

    def change(self, descriptors: list[int], **asked: Any) -> dict[str, Any]:
        """Compute the right answer for changed inputs, and write it: see `_changed`."""
        return _changed(**asked)


def _refused_or(do: Callable[..., dict[str, Any]], **asked: Any) -> dict[str, Any]:
    """What was asked for. A refusal is an answer too: one line."""
    try:
        return do(**asked)
    except WrongRequest as refused:
        return {"refused": str(refused)}


def _looked(file: str, size: int | None, folder: str) -> dict[str, Any]:
    """Run a file, and write the inputs that it makes. Returns the names of its functions, and the size."""
    path = Path(file)
    module = travel.loaded(path)
    names = [name for name, each in vars(module).items() if _is_raced(name, each, module)]
    if not names:
        raise WrongRequest(f"{path.name} defines no function to race, beside {INPUTS} and {REFERENCE}")
    make = getattr(module, INPUTS, None)
    if not callable(make):
        raise WrongRequest(f"{path.name} has no function {INPUTS}(size), which makes what the others get")
    given = _sizes(make, size, path.name)
    inputs = make(*given)
    Race(Path(folder)).write_inputs(inputs if isinstance(inputs, tuple) else (inputs,))
    known = next((each for each in given if type(each) is int and each > 0), None)
    return {"names": names, "reference": callable(getattr(module, REFERENCE, None)), "size": known}


def _answered(folder: str, function: str, judge: str, tolerance: float | None) -> dict[str, Any]:
    """Compute the right answer, and the bounds within which others are right, and write them. Returns its seconds.

    function, judge: the name of the function that is right, and what to call it.
    """
    race = Race(Path(folder))
    right = race.function(function)
    before = race.kept_inputs()
    arrays = [form.given(each.copy()) for form, each in zip(race.inputs, before, strict=True)]
    begin = perf_counter()
    outputs = arrays_of(right(*race.arguments(arrays)))
    seconds = perf_counter() - begin
    if not outputs:
        raise WrongRequest(f"{judge} returns no array: an empty tuple")
    after = [form.kept(each) for form, each in zip(race.inputs, arrays, strict=True)]
    if not all(same_bits(*each).all() for each in zip(after, before, strict=True)):
        raise WrongRequest(f"{judge} changes an input, so it cannot tell what is right")
    forms = tuple(Form.of(each, f"what {judge} returns") for each in outputs)
    pairs = list(zip(forms, (form.kept(each) for form, each in zip(forms, outputs, strict=True)), strict=True))
    width = None
    if tolerance is not None:
        references = [_tolerated(form, value, tolerance) for form, value in pairs]
    elif any(form.is_real for form in forms):
        bounds = _bounds(lambda *given: right(*race.arguments(given)), arrays, forms, judge)
        exact = zip(pairs, bounds, strict=True)
        references = [bound if form.is_real else Reference(value) for (form, value), bound in exact]
        width = min(max(each.width for each in references), sys.float_info.max)  # JSON has no infinity
        if check_outputs([value for _, value in pairs], references, "componentwise").reason:
            raise WrongRequest(f"what {judge} returns lies outside the bound that comes by itself: {_GIVE}")
    else:
        references = [Reference(value) for _, value in pairs]
    race.write_answer(forms, references, width)
    return {"seconds": seconds}


def _changed(folder: str, function: str) -> dict[str, Any]:
    """Change the inputs a little, compute the right answers, and write both."""
    race = Race(Path(folder))
    right = race.function(function)

    def call(given: Sequence[Array]) -> tuple[Array, ...]:
        return arrays_of(right(*race.arguments(given)))

    own = [form.given(each) for form, each in zip(race.inputs, race.kept_inputs(), strict=True)]
    race.write_changes(kept.changes(call, own, race.inputs, race.outputs))
    return {}


def _is_raced(name: str, value: Any, module: ModuleType) -> bool:
    if name.startswith("_") or name in (INPUTS, REFERENCE) or inspect.isclass(value):
        return False
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def _sizes(make: Callable[..., Any], size: int | None, file: str) -> list[Any]:
    """What the function that makes the inputs is called with. Raises WrongRequest where that is not clear."""
    parameters = list(inspect.signature(make).parameters.values())
    if not parameters:
        if size is not None:
            raise WrongRequest(f"{INPUTS} of {file} takes no size: leave out --size")
        return []
    if size is not None:
        return [size]
    if parameters[0].default is inspect.Parameter.empty:
        raise WrongRequest(f"{INPUTS} of {file} has no default size: give --size N")
    return [parameters[0].default]


def _tolerated(form: Form, value: Array, tolerance: float) -> Reference:
    if not form.is_real:
        return Reference(value)
    return by_tolerance(value, tolerance, np.abs(form.given(value)) if form.dtype.kind == "c" else None)


def _bounds(
    function: Callable[..., Any], arrays: Sequence[Array], forms: Sequence[Form], judge: str
) -> Sequence[Reference]:
    """The answer with bounds that hold for any order of sums.

    Raises WrongRequest, with one line, where there are none.
    """
    if "c" in [each.kind for each in (*(array.dtype for array in arrays), *(form.dtype for form in forms))]:
        raise WrongRequest(f"there are no bounds for the complex numbers of {judge}: {_GIVE}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows say how wide a bound is
        try:
            found = bounded(function, *arrays, results=[form.dtype for form in forms])
        except Exception as error:  # of arrays with errors, a library may raise anything
            why = in_one_line(str(error), 1).partition(": give ")[0][:_LONGEST_REASON] or type(error).__name__
            raise WrongRequest(f"the bounds cannot follow {judge} ({why}): {_GIVE}") from error
    references = found if isinstance(found, tuple) else (found,)
    if [each.value.shape for each in references] != [form.shape for form in forms]:
        raise WrongRequest(f"{judge} returns other shapes for arrays that carry their error: {_GIVE}")
    if not all(map(_judges, references)):
        raise WrongRequest(f"the bound of what {judge} computes is infinite: {_GIVE}")
    return references


def _judges(reference: Reference) -> bool:
    """Whether no finite element may be anything."""
    if reference.bound is None:
        return True
    excused = False if reference.overflow is None else reference.overflow
    return bool((np.isfinite(reference.bound) | ~np.isfinite(reference.value) | excused).all())


if __name__ == "__main__":
    serve(Session())
