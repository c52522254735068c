"""Shows this machine: its CPU, every backend and target, the fix for missing ones, and the kernels of plug-ins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from py_backends.contract import Target
from py_backends.display import layout
from py_backends.display.console import plain_table, print_parts, print_remarks
from py_backends.display.layout import Remark
from py_backends.workers.probe import BroughtKernel, origin

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
    rows = []
    for backend, target in found:
        package = origin(backend)
        what = [target.device, target.version, package and f"from {package}"]
        rows.append((backend, target.name, _state(target), ", ".join(filter(None, what))))
    _print_table(("backend", "target", "state", "device and version"), rows, out)
    if kernels:
        brought = [
            (each.kernel, each.package, "missing" if each.reason else "available", ", ".join(each.backends))
            for each in kernels
        ]
        _print_table(("kernel", "from", "state", "sources for"), brought, out)
    remarks = [
        Remark(f"{backend} {target.name}", target.reason, target.fix) for backend, target in found if target.reason
    ] + [Remark(f"kernel {each.kernel}", each.reason, each.fix) for each in kernels if each.reason]
    print_remarks("Missing or emulated", remarks, out)


def _print_table(columns: Sequence[str], rows: Sequence[tuple[str, str, str, str]], out: Console) -> None:
    """Three short columns, of which the last is a state, and one that may wrap."""
    table = plain_table(show_header=True)
    for column in columns[:-1]:
        table.add_column(column, no_wrap=True)
    table.add_column(columns[-1], overflow="fold")
    for *names, state, what in rows:
        table.add_row(*names, Text(state, style=_STYLES[state]), what)
    out.print()
    out.print(Padding(table, (0, 0, 0, 2)))


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
    of_machine = {"schema_version": SCHEMA_VERSION, "machine": dict(machine)}
    return json.dumps({**of_machine, "backends": backends, "plugin_kernels": brought}, indent=1, allow_nan=False) + "\n"


def _state(target: Target) -> str:
    if target.emulated:
        return "emulated"
    return "available" if target.available else "missing"
