"""Races functions: each in a process of its own, checked against the first one, timed in rounds, and judged."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

from py_backends import limits, registry
from py_backends.errors import WrongRequest
from py_backends.harness.compare import HOT, Progress, checked_settings, run
from py_backends.harness.plan import Plan
from py_backends.racing import folder, kept, travel
from py_backends.racing.folder import VARIANT, Facts, Race, backend_of
from py_backends.racing.problem import format_of
from py_backends.results.report import BOUND_WIDTH, FUNCTIONS, Report
from py_backends.results.spec import Spec
from py_backends.wording import shown
from py_backends.workers.probe import BackendTarget
from py_backends.workers.process import Worker, WorkerFailed

DEFAULT_BUDGET, PATIENCE = 6.0, 30.0
_RUNS = 12
"""For which a function must have time: it is checked, and has the fewest rounds. It cannot run at a smaller shape."""
_KERNEL, _REFERENCE = "race", "reference"
_ANSWER = "py_backends.racing.answer"
_WAITED_FOR_CHANGES = 10.0
"""Seconds for the right answer for changed inputs. Without it there is one check less."""
_JUDGE = "-judge"
"""Where the function lies that is right, if it does not race: no function has such a name."""
_NAME = re.compile(r"\w[\w+ -]{0,60}")
_MOST_ARRAYS = 15


def race(
    functions: Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]],
    inputs: Any,
    *,
    reference: Callable[..., Any] | None = None,
    tolerance: float | None = None,
    threads: int | None = None,
    budget: float = DEFAULT_BUDGET,
    patience: float = PATIENCE,
    progress: Progress | None = None,
    command: str | None = None,
) -> Report:
    """Run functions on the same inputs, check that all agree, and time each against the first.

        pb.race({"numpy": np.cumsum, "mine": mine.scan}, inputs=(x,))

    Each runs in a process of its own. It returns an array, of NumPy or of a library whose arrays NumPy reads, or a
    tuple of arrays. Results have the shapes and dtypes of the first function's. Whole numbers, booleans, strings and
    times agree bit for bit, real and complex numbers within a bound.

    functions: by their names, or functions with names of their own. The first one is the baseline.
    inputs: a tuple of arrays of any shapes and dtypes but objects and long double, and of other values. An array alone
        counts as one. Functions get arrays in C order, which they cannot write to, and other values as they are.
    reference: a function that is right, in place of the first one.
    tolerance: the largest error, relative to the largest element of an output. None: the bound that holds for any order
        of the sums of the right function in plain NumPy (`py_backends.bounds`).
    threads: of libraries that can be told. None: all logical CPUs.
    budget: seconds to load, check and time the functions. The right answer, the fewest rounds, which are 3, and the
        last check come on top.
    patience: seconds without an answer after which a function counts as hung. Its first call may compile.
    progress: receives what is running.
    command: the command line, for the record.

    Raises ValueError, in one line, for names that are no names, inputs or functions that cannot travel to another
    process, and a right function that fails or has no bound. A fault of another function is in its row. After Ctrl-C it
    returns the results so far.
    """
    settings = checked_settings(threads, 1, budget, HOT, command)
    named = _named(functions)
    with folder.new() as place:
        place.write_inputs(inputs if isinstance(inputs, tuple) else (inputs,))
        packed = {name: travel.packed(each, name) for name, each in named.items()}
        if reference is not None:
            packed[_JUDGE] = travel.packed(_callable(reference, _REFERENCE), _REFERENCE)
        with _answering(place, patience) as ask:
            _prepare(place, Facts(_KERNEL, tuple(named), settings["threads"]), packed, tolerance, ask)
        return _run(place, settings, patience, progress)


def race_file(
    file: Path,
    size: int | None = None,
    *,
    tolerance: float | None = None,
    threads: int | None = None,
    budget: float = DEFAULT_BUDGET,
    patience: float = PATIENCE,
    progress: Progress | None = None,
    command: str | None = None,
) -> Report:
    """Race the functions that a file defines, on what its function `inputs` makes, as `race` does.

    size: what `inputs` gets. None: its own default.
    """
    settings = checked_settings(threads, 1, budget, HOT, command)
    if file.suffix != ".py" or not file.is_file():
        raise WrongRequest(f"{file} is no file of Python")
    path = file.resolve()
    with folder.new() as place:
        with _answering(place, patience) as ask:
            found = ask("look", f"{file} cannot be run", file=str(path), size=size)
            packed = {name: travel.packed_from(path, name) for name in found["names"]}
            if found["reference"]:
                packed[_JUDGE] = travel.packed_from(path, _REFERENCE)
            facts = Facts(_kernel_of(path), tuple(found["names"]), settings["threads"], size=found["size"])
            _prepare(place, facts, packed, tolerance, ask)
        return _run(place, settings, patience, progress)


Ask = Callable[..., dict[str, Any]]
"""Asks the process that computes the answer. Raises WrongRequest, with one line, if that refuses or fails."""


@contextmanager
def _answering(place: Race, patience: float) -> Iterator[Ask]:
    """That process, for the race in a folder."""
    if not (isinstance(patience, Real) and 0 < patience < math.inf):
        raise WrongRequest(f"patience must be a number of seconds above 0, not {shown(patience)}")
    try:
        worker = Worker(module=_ANSWER, patience=float(patience))
    except WorkerFailed as failed:
        raise WrongRequest(failed.reason) from failed

    def ask(do: str, otherwise: str, **arguments: Any) -> dict[str, Any]:
        try:
            answer = worker.ask(do, folder=str(place.path), **arguments)
        except WorkerFailed as failed:
            raise WrongRequest(f"{otherwise}: {failed.reason}") from failed
        if "refused" in answer:
            raise WrongRequest(answer["refused"])
        return answer

    try:
        yield ask
    finally:
        worker.close()


def _prepare(place: Race, facts: Facts, packed: Mapping[str, bytes], tolerance: float | None, ask: Ask) -> None:
    """Write all that a race needs into its folder, the right answers at last."""
    given = None if tolerance is None else limits.tolerance(tolerance)
    function, judge = (_JUDGE, _REFERENCE) if _JUDGE in packed else (facts.names[0],) * 2
    place.write(replace(facts, judge=judge), packed)
    asked = {"function": function, "judge": judge, "tolerance": given}
    seconds = ask("answer", f"{judge} cannot tell what is right", **asked)["seconds"]
    if len(place.inputs) + len(place.outputs) > _MOST_ARRAYS:
        raise WrongRequest(f"a race has at most {_MOST_ARRAYS} arrays in and out")
    if len(packed) == 1:
        raise WrongRequest(f"{facts.names[0]} is alone, so nothing is compared: add a function, or a `{_REFERENCE}`")
    place.write_changes([])
    if seconds <= kept.LONGEST_ANSWER:
        _ask_for_changes(place, function)


def _ask_for_changes(place: Race, function: str) -> None:
    """Have changes of the inputs written, with what is right then, if the right function can tell.

    In a process where it has not been called: it may keep results too.
    """
    try:
        with _answering(place, _WAITED_FOR_CHANGES) as ask:
            ask("change", "", function=function)
    except WrongRequest:
        place.write_changes([])  # it may have ended while they were written


def _run(place: Race, settings: dict[str, Any], patience: float, progress: Progress | None) -> Report:
    """Run what is in the folder as any comparison."""
    facts, dtype = place.facts, format_of(place)
    sizes = () if facts.size is None else (facts.size,)

    def specs(found: Sequence[BackendTarget]) -> list[Spec]:
        return [Spec(facts.kernel, backend, target.name, VARIANT, dtype, sizes) for backend, target in found]

    plan = Plan(list(map(backend_of, facts.names)), specs, runs=_RUNS, shorten=False, patience=patience)
    with place.known():
        return run(plan, settings | {FUNCTIONS: list(facts.names), BOUND_WIDTH: place.width}, progress)


def _named(functions: Any) -> dict[str, Callable[..., Any]]:
    """The functions by their names. Raises WrongRequest for what is no function or no name, or named twice."""
    if isinstance(functions, Mapping):
        pairs = list(functions.items())
    elif isinstance(functions, Sequence) and not isinstance(functions, str):
        pairs = [(getattr(each, "__name__", None), each) for each in functions]
    else:
        raise WrongRequest(f"functions are a mapping from names, or a list of functions, not {shown(functions)}")
    if not pairs:
        raise WrongRequest("there is no function to race")
    named: dict[str, Callable[..., Any]] = {}
    for name, function in pairs:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise WrongRequest(
                f"a function is named with letters, digits, spaces and + -, not {shown(name)}: name it in a dict"
            )
        if name in named:
            raise WrongRequest(f"two functions are named {name}: name them in a dict")
        named[name] = _callable(function, name)
    return named


def _callable(function: Any, name: str) -> Callable[..., Any]:
    if not callable(function):
        raise WrongRequest(f"{name} is {shown(function)}, which is no function")
    found: Callable[..., Any] = function
    return found


def _kernel_of(file: Path) -> str:
    """What rows of a file's functions are called: as the file, if no kernel is."""
    name = file.stem
    free = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
    return name if free and not registry.is_kernel(name) else _KERNEL
