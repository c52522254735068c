"""Shows this machine: its CPU, every backend and target, the fix for missing ones, and the kernels of plug-ins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from py_backends.contract import Target
from py_backends.harness.doctor import BroughtKernel, origin
from py_backends.report import layout
from py_backends.report.layout import Remark
from py_backends.report.table import print_parts, print_remarks

SCHEMA_VERSION = 1
_STYLES = {"available": "green", "emulated": "yellow", "missing": "dim"}

Found = Sequence[tuple[str, Target]]
"""Names of backends, each with a target."""


def print_doctor(found: Found, kernels: Sequence[BroughtKernel], machine: Mapping[str, Any], out: Console) -> None:
    """The CPU; a line for each backend and target, and for each kernel of a plug-in.

    Below, reasons and fixes for what is missing.
    """
    parts = filter(None, [layout.processor(machine), layout.caches(machine)])
    print_parts([Text(part, style="bold") for part in parts], out)
    out.print()
    table = _table("backend", "target", "state", "device and version")
    for backend, target in found:
        state = _state(target)
        package = origin(backend)
        what = ", ".join(filter(None, [target.device, target.version, package and f"from {package}"]))
        table.add_row(backend, target.name, Text(state, style=_STYLES[state]), what)
    out.print(Padding(table, (0, 0, 0, 2)))
    if kernels:
        table = _table("kernel", "from", "state", "sources for")
        for each in kernels:
            state = "missing" if each.reason else "available"
            table.add_row(each.kernel, each.package, Text(state, style=_STYLES[state]), ", ".join(each.backends))
        out.print()
        out.print(Padding(table, (0, 0, 0, 2)))
    remarks = [
        Remark(f"{backend} {target.name}", target.reason, target.fix) for backend, target in found if target.reason
    ] + [Remark(f"kernel {each.kernel}", each.reason, each.fix) for each in kernels if each.reason]
    print_remarks("Missing or emulated", remarks, out)


def _table(*columns: str) -> Table:
    """Three short columns, and a last one that may wrap."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for column in columns[:-1]:
        table.add_column(column, no_wrap=True)
    table.add_column(columns[-1], overflow="fold")
    return table


def doctor_json(found: Found, kernels: Sequence[BroughtKernel], machine: Mapping[str, Any]) -> str:
    """The same as strict JSON."""
    backends = [
        {
            "backend": backend,
            "target": target.name,
            "available": target.available and not target.emulated,
            "emulated": target.emulated,
            "device": target.device,
            "version": target.version,
            "package": origin(backend),
            "reason": target.reason,
            "fix": target.fix,
        }
        for backend, target in found
    ]
    brought = [
        {
            "kernel": each.kernel,
            "package": each.package,
            "available": each.reason is None,
            "backends": list(each.backends),
            "reason": each.reason,
            "fix": each.fix,
        }
        for each in kernels
    ]
    whole = {
        "schema_version": SCHEMA_VERSION,
        "machine": dict(machine),
        "backends": backends,
        "plugin_kernels": brought,
    }
    return json.dumps(whole, indent=1, allow_nan=False) + "\n"


def _state(target: Target) -> str:
    if target.emulated:
        return "emulated"
    return "available" if target.available else "missing"
