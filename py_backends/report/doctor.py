"""Shows what this machine has: every backend and target, and what would bring those that are missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from py_backends._contract import Target
from py_backends.report.layout import Remark
from py_backends.report.table import print_remarks

SCHEMA_VERSION = 1
_STYLES = {"available": "green", "emulated": "yellow", "missing": "dim"}

Found = Sequence[tuple[str, Target]]
"""Names of backends, each with a target."""


def print_doctor(found: Found, out: Console) -> None:
    """A line a backend and target; below them the reasons and fixes of those that are not there."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("backend", no_wrap=True)
    table.add_column("target", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("device and version", overflow="fold")
    for backend, target in found:
        state = _state(target)
        what = ", ".join(filter(None, [target.device, target.version]))
        table.add_row(backend, target.name, Text(state, style=_STYLES[state]), what)
    out.print(Padding(table, (0, 0, 0, 2)))
    remarks = [
        Remark(f"{backend} {target.name}", target.reason, target.fix) for backend, target in found if target.reason
    ]
    print_remarks("Missing or emulated", remarks, out)


def doctor_json(found: Found, machine: Mapping[str, Any]) -> str:
    """The same as strict JSON."""
    backends = [
        {
            "backend": backend,
            "target": target.name,
            "available": target.available and not target.emulated,
            "emulated": target.emulated,
            "device": target.device,
            "version": target.version,
            "reason": target.reason,
            "fix": target.fix,
        }
        for backend, target in found
    ]
    whole = {"schema_version": SCHEMA_VERSION, "machine": dict(machine), "backends": backends}
    return json.dumps(whole, indent=1, allow_nan=False) + "\n"


def _state(target: Target) -> str:
    if target.emulated:
        return "emulated"
    return "available" if target.available else "missing"
