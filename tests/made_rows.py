"""What tests share that make rows of results up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from py_backends import registry
from py_backends.results.report import Row, Work


def with_work(row: Row) -> Row:
    """The row with the work of its kernel at its shape, as a comparison records it."""
    problem = registry.problem(row.kernel)
    return replace(row, work=Work.of(problem, tuple(row.shape.values()), np.dtype(row.dtype)))


def without_rounds(row: Row, *dropped: int) -> Row:
    """The row without the samples of its kernel in these rounds."""
    kept = [None if number in dropped else seconds for number, seconds in enumerate(row.kernel_seconds)]
    return replace(row, kernel_seconds=kept)
