"""The identity of a row: what it is told apart by, within a run and between several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from py_backends.results.report import Row
from py_backends.results.spec import Implementation, Spec, Workload, told_apart

SPEC = Spec("matmul", "openmp", "cpu", "tuned", "float32", (8, 8, 8), 2)


def test_a_row_is_what_was_asked_for() -> None:
    row = Row("matmul", "openmp", "cpu", "tuned", "float32", {"m": 8, "n": 8, "k": 8}, "ok", threads=2)
    assert row.spec == SPEC
    assert replace(row, shape={"m": 5, "n": 5, "k": 5}, requested=row.shape).spec == SPEC, "it ran at a smaller shape"
    assert (SPEC.workload, SPEC.implementation) == (
        Workload("matmul", "float32", (8, 8, 8), 2),
        Implementation("openmp", "cpu", "tuned"),
    )


@pytest.mark.parametrize(
    ("workload", "title"),
    [
        (SPEC.workload, "matmul  float32  8 x 8 x 8  2 threads"),
        (Workload("vecadd", "float64", (9,), 1), "vecadd  float64  9  1 thread"),
        (Workload("vecadd", "float64", (), None), "vecadd  float64"),
    ],
)
def test_a_workload_has_a_title(workload: Workload, title: str) -> None:
    assert workload.title == title


class TestToldApart:
    def test_machines_with_other_numbers_of_threads_are_compared(self) -> None:
        key = told_apart([SPEC], [replace(SPEC, threads=64)])
        assert key(SPEC) == key(replace(SPEC, threads=64))

    def test_by_threads_where_one_run_has_several(self) -> None:
        key = told_apart([SPEC], [SPEC, replace(SPEC, threads=1)])
        assert key(SPEC) == SPEC
        assert key(SPEC) != key(replace(SPEC, threads=1))

    def test_threads_of_another_implementation_do_not_matter(self) -> None:
        numpy = replace(SPEC, backend="numpy")
        key = told_apart([numpy], [SPEC, replace(SPEC, threads=1), replace(numpy, threads=64)])
        assert key(numpy) == key(replace(numpy, threads=64))

    def test_rows_that_are_there_twice_are_not_several(self) -> None:
        assert told_apart([SPEC, SPEC])(SPEC).threads is None
