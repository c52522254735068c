"""The right answer of a race, computed in a process of its own: what runs there may hang, crash or end it.

`py_backends.racing.race` starts it as a worker, `python -m py_backends.racing.answer DESCRIPTOR`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from py_backends.bounds import bounded
from py_backends.contract import Array, Reference
from py_backends.errors import WrongRequest
from py_backends.racing import travel
from py_backends.racing.folder import Race
from py_backends.racing.form import Form, arrays_of
from py_backends.system.bits import same_bits
from py_backends.wording import in_one_line
from py_backends.workers.serve import serve

INPUTS, REFERENCE = "inputs", "reference"
"""The functions of a file that are not raced."""
_GIVE = "give a tolerance in its place, such as 1e-6, relative to the largest element of an output"


def answering(method: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A request whose refusal is an answer too: one line."""

    def asked(self: Session, descriptors: list[int], **arguments: Any) -> dict[str, Any]:
        try:
            return method(self, **arguments)
        except WrongRequest as refused:
            return {"refused": str(refused)}

    return asked


class Session:
    """What the process does: it looks at a file of functions, and computes the answer."""

    @answering
    def look(self, file: str, size: int | None, folder: str) -> dict[str, Any]:
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

    @answering
    def answer(self, folder: str, function: str, judge: str, tolerance: float | None) -> dict[str, Any]:
        """Compute the right answer, and the bounds within which others are right, and write them.

        function, judge: the name of the function that is right, and what to call it.
        """
        race = Race(Path(folder))
        right = race.function(function)
        kept = race.kept_inputs()
        arrays = [form.given(each.copy()) for form, each in zip(race.inputs, kept, strict=True)]
        outputs = arrays_of(right(*race.arguments(arrays)))
        if not all(
            same_bits(f.kept(now), before).all() for f, now, before in zip(race.inputs, arrays, kept, strict=True)
        ):
            raise WrongRequest(f"{judge} changes an input, so it cannot tell what is right")
        forms = tuple(Form.of(each, f"what {judge} returns") for each in outputs)
        values = [form.kept(each) for form, each in zip(forms, outputs, strict=True)]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            if tolerance is not None:
                references = [_tolerated(form, each, tolerance) for form, each in zip(forms, values, strict=True)]
            elif any(form.is_real for form in forms):
                references = _bounded(lambda *given: right(*race.arguments(given)), arrays, forms, values, judge)
            else:
                references = [Reference(each) for each in values]
        note = next((str(each.message) for each in told if "the bound is" in str(each.message)), None)
        race.write_answer(forms, references, note)
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
    wide = value.astype(np.float64)
    sizes = np.abs(form.given(value).astype(np.complex128 if form.dtype.kind == "c" else np.float64))
    largest = sizes[np.isfinite(sizes)].max(initial=0.0)
    return Reference(wide, np.full(wide.shape, tolerance * largest))


def _bounded(
    function: Callable[..., Any], arrays: Sequence[Array], forms: Sequence[Form], values: Sequence[Array], judge: str
) -> list[Reference]:
    """The answer with bounds that hold for any order of sums. Raises WrongRequest where there are none."""
    several = [each.dtype.kind for each in (*arrays, *forms) if each.dtype.kind not in "fiubV"]
    if "c" in several:
        raise WrongRequest(f"there are no bounds for the complex numbers of {judge}: {_GIVE}")
    try:
        found = bounded(function, *arrays, results=[form.dtype for form in forms])
    except Exception as error:
        why = in_one_line(str(error)).partition(": give ")[0] or type(error).__name__
        raise WrongRequest(f"the bounds cannot follow {judge} ({why}): {_GIVE}") from error
    references = list(found) if isinstance(found, tuple) else [found]
    for form, reference in zip(forms, references, strict=True):
        if form.is_real and not _judges(reference):
            raise WrongRequest(f"the bound of what {judge} computes is infinite: {_GIVE}")
    pairs = zip(forms, references, values, strict=True)
    return [reference if form.is_real else Reference(value) for form, reference, value in pairs]


def _judges(reference: Reference) -> bool:
    assert reference.bound is not None  # a real output has one
    excused = False if reference.overflow is None else reference.overflow
    return bool((np.isfinite(reference.bound) | ~np.isfinite(reference.value) | excused).all())


if __name__ == "__main__":
    serve(Session())
