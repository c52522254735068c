"""Records in a row how it failed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from py_backends import registry
from py_backends.errors import fix_of
from py_backends.harness.running_row import RunningRow
from py_backends.workers.process import WorkerFailed


@contextlib.contextmanager
def failures_of(row: RunningRow) -> Iterator[None]:
    """Record in the row whatever fails within."""
    try:
        yield
    except Exception as failed:  # noqa: BLE001  # `fail` raises again what no row can have caused
        fail(row, failed)


def fail(row: RunningRow, failed: Exception) -> None:
    """Record in a row how it failed. Raises any error again that neither a worker nor a plug-in's problem caused."""
    row.check = row.prepared = None
    if isinstance(failed, MemoryError):
        row.status, row.reason = "skipped", str(failed)
    elif isinstance(failed, WorkerFailed):
        row.status, row.reason, row.fix = failed.status, failed.reason, failed.fix
    elif fix := fix_of(failed):
        row.status, row.reason, row.fix = "error", str(failed), fix
    elif broken := registry.blamed(row.spec.kernel, failed, row.spec.sizes):
        row.status, row.reason, row.fix = "error", broken.reason, broken.fix
    else:
        raise failed
