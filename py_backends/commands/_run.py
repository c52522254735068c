"""Functions that commands share: they run comparisons, and show the progress bar."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from py_backends.commands._options import ALL
from py_backends.errors import WrongRequest

if TYPE_CHECKING:
    from py_backends.harness.compare import Progress
    from py_backends.harness.plan import Plan
    from py_backends.results.report import Report


def names(names: list[str] | None) -> list[str] | None:
    """The names as the harness takes them: None for all."""
    return None if names in (None, [ALL]) else names


def dtypes(given: list[str]) -> Sequence[str]:
    """The dtypes that --dtype names."""
    from py_backends.number_formats import DTYPES

    return DTYPES if given == [ALL] else given


def shapes(given: Sequence[tuple[str, tuple[Any, ...]]] | None) -> dict[str, list[tuple[Any, ...]]]:
    """The requested shapes of each kernel. A single size stands for all sizes of its arrays."""
    from py_backends import registry
    from py_backends.harness.request import checked_sizes

    shapes: dict[str, list[tuple[Any, ...]]] = {}
    for kernel, given_sizes in given or ():
        problem = registry.problem(kernel)
        if len(given_sizes) == 1:
            sizes = problem.equal_sizes(*given_sizes)
        elif len(given_sizes) in (len(problem.dimensions), len(problem.parameters)):
            sizes = problem.whole_sizes(given_sizes)
        else:
            written = " x ".join(name.upper() for name in problem.parameters)
            raise WrongRequest(f"{kernel} has the dimensions {written}: give as many sizes, or one for all")
        checked_sizes(problem, sizes)
        if sizes not in shapes.setdefault(kernel, []):
            shapes[kernel].append(sizes)
    return shapes


def chosen(options: argparse.Namespace) -> dict[str, Any]:
    """The names of backends, targets, variants and dtypes, as the harness takes them."""
    return {
        "backends": names(options.backend),
        "targets": names(options.target),
        "variants": options.variant,
        "dtypes": dtypes(options.dtype),
    }


def compared(options: argparse.Namespace) -> Report:
    """Run the comparison that these options ask for, with a progress bar."""
    from py_backends.harness.compare import compare

    with progress() as shown:
        return compare(
            kernels=options.kernel,
            **chosen(options),
            shapes=shapes(options.shape),
            threads=options.threads,
            seed=options.seed,
            budget=options.budget,
            cache=options.cache,
            progress=shown,
            command=options.line,
        )


def run_planned(plan: Plan, options: argparse.Namespace) -> Report:
    """Run a plan with these options and a progress bar.

    `--resume` does not take its results: they do not contain the request.
    """
    from py_backends.harness.compare import HOT, checked_settings, run

    with progress() as shown:
        cache = getattr(options, "cache", HOT)  # not every command has the option
        settings = checked_settings(options.threads, options.seed, options.budget, cache, options.line)
        return run(plan, settings, shown)


@contextmanager
def progress() -> Iterator[Progress | None]:
    """A progress bar on standard error, removed at the end; None if standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(24), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=1.0)

    class Shown:
        def update(self, done: float, total: float, text: str) -> None:
            bar.update(task, completed=done, total=total, description=text)

    bar.start()
    try:
        yield Shown()
    finally:
        with suppress(OSError):  # if the terminal was closed, the results must still be written
            bar.stop()
