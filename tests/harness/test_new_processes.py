"""Rows go on in new processes: what a process has for life is drawn anew."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from py_backends.harness.pool import Pool
from py_backends.harness.request import Request
from py_backends.harness.running_row import RunningRow, running_rows
from py_backends.harness.schedule import in_new_processes, placed_anew
from py_backends.workers import probe


def processes(rows: Sequence[RunningRow]) -> set[int]:
    workers = [row.runner._worker for row in rows]
    return {worker.process for worker in workers if worker}


def test_rows_go_on_in_new_processes_and_are_right_there() -> None:
    found = probe.probe(("numpy", "python"))
    shapes = {"vecadd": [(1009,)], "matmul": [(17, 19, 23)]}
    request = Request(["vecadd", "matmul"], ["numpy", "python"], shapes=shapes)
    with Pool(1, 1) as pool:
        rows = [
            row.on(pool.runner_of(row), pool.case(row.problem, row.spec.sizes, row.dtype))
            for row in running_rows(request.specs(found), found, 1)
        ]
        for row in rows:
            row.try_once()
        before = processes(rows)
        assert len(before) == 2, "rows of a backend share a worker"
        in_new_processes(rows)
        after = processes(rows)
        assert len(after) == 2
        assert not after & before
        for row in placed_anew(rows, Random(1)):
            assert not row.samples
            assert row.sample().kernel > 0
            row.try_once()
        assert [row.status for row in rows] == ["ok"] * 4


def test_what_fails_in_a_new_process_fails_in_its_round() -> None:
    found = probe.probe(("numpy",))
    with Pool(1, 1) as pool:
        (row,) = running_rows(Request(["vecadd"], ["numpy"], shapes={"vecadd": [(1009,)]}).specs(found), found, 1)
        row.on(pool.runner_of(row), pool.case(row.problem, row.spec.sizes, row.dtype)).try_once()
        row.runner.kill()
        in_new_processes([row])
        assert row.failed is None
