"""All ways in which the suite draws inputs: NumPy's kernels lie within the bounds that come by themselves."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from written_plainly import KERNELS

from py_backends import registry
from py_backends.bounds import bounded
from py_backends.conformance.selection import all_kinds_of
from py_backends.conformance.trials import Trial, chosen
from py_backends.contract import Array, Problem
from py_backends.results.check import _check_reference, check_output

MUCH_WORK = 3_000_000
SOURCES = Path(__file__).parents[2] / "kernels"


def lecture(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{name}_in_numpy", SOURCES / name / "lecture" / "numpy.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def trials(name: str, dtype: str) -> Iterator[Trial]:
    problem = registry.problem(name)
    for kind in all_kinds_of(name):
        for case in chosen(kind, name, dtype, quick=True):
            if isinstance(case, Trial) and problem.work(case.sizes) <= MUCH_WORK:
                yield case


def wrong(problem: Problem, trial: Trial, dtype: np.dtype[Any], inputs: list[Array], source: ModuleType) -> str | None:
    result = np.zeros(problem.shapes(trial.sizes)[-1], problem.result_dtype(dtype))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(source, problem.name)(*inputs, result, *problem.scalars(trial.sizes, dtype))
        reference = bounded(
            KERNELS[problem.name],
            *inputs,
            numbers=trial.sizes[len(problem.dimensions) :],
            sums=problem.sum_dtype(dtype),
            results=[result.dtype],
        )
        _check_reference(reference, "componentwise", result.shape, result.dtype)
    return check_output(result, reference, "componentwise").reason


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "dtype"), [(name, d) for name in KERNELS for d in registry.problem(name).dtypes])
def test_right_results_lie_within_whatever_is_drawn(name: str, dtype: str) -> None:
    problem, of_run, source = registry.problem(name), np.dtype(dtype), lecture(name)
    for trial in trials(name, dtype):
        inputs = list(trial.inputs(problem, of_run))
        assert (reason := wrong(problem, trial, of_run, inputs, source)) is None, f"{trial.name}: {reason}"
