"""Shows what a first program did: each step in words, its lines of the source, and what they printed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from py_backends.commands.hello.programs import Program, Step
from py_backends.commands.hello.run import Outcome
from py_backends.display.code import coloured
from py_backends.display.console import print_remarks
from py_backends.display.layout import Remark

_NUMBERS, _GAP = 3, 3
"""Widths in characters: of the number of a line, and between columns."""
_PRINTED = "green"


def print_program(program: Program, outcome: Outcome, out: Console) -> None:
    """Its title and command, why it does not run as it should, and its steps."""
    out.print(Text(program.title, style="bold"))
    out.print(Text(f"{_place(program)}    {outcome.command or 'not run'}", style="dim"))
    if outcome.reason:
        remark = Remark(program.path.name, outcome.reason, outcome.fix)
        print_remarks("Emulated" if outcome.ran else "Not run", [remark], out)
    width = _width_of_code(program, outcome, out)
    for step in program.steps:
        out.print()
        if step.number:
            out.print(Text(f"{step.number}. {step.text}", style="bold"))
        _print_step(step, program, outcome.printed.get(step.number, ()), width, out)


def print_sources(programs: Sequence[Program], out: Console) -> None:
    """The whole files. A single one goes into a pipe unchanged, so that it can be saved and run."""
    for program in programs:
        if out.is_terminal or len(programs) > 1:
            out.print(Text(f"==> {_place(program)} <==", style="dim"))
        if out.is_terminal:
            out.print(coloured(program.source, program.path))
        else:
            out.file.write(program.source)


def _print_step(step: Step, program: Program, printed: Sequence[str], width: int, out: Console) -> None:
    """The code, and what it printed, beside it if there is room, else below."""
    beside = _widest(step.code) <= width
    lines = coloured("\n".join(step.code), program.path).split("\n", allow_blank=True)
    effects = printed if beside else ()
    table = Table.grid(padding=(0, _GAP, 0, 0))
    table.add_column(width=_NUMBERS, justify="right", style="dim")
    table.add_column(width=width if effects else None, overflow="fold")
    table.add_column(overflow="fold", style=_PRINTED)
    for at, (line, effect) in enumerate(zip_longest(lines, effects, fillvalue="")):
        table.add_row(str(step.first + at) if at < len(step.code) else "", line, effect)
    out.print(table)
    if printed and not beside:
        below = Text("\n".join(printed), style=_PRINTED)
        out.print(Padding(below, (0, 0, 0, _NUMBERS + 2 * _GAP)))


def _width_of_code(program: Program, outcome: Outcome, out: Console) -> int:
    """The width of the code that leaves room for all that is printed beside it."""
    steps = sorted((_widest(step.code), step.number) for step in program.steps if step.number in outcome.printed)
    most = 0
    needed = 0
    for code, number in steps:
        needed = max(needed, _widest(outcome.printed[number]))
        if _NUMBERS + _GAP + code + _GAP + needed <= out.width:
            most = code
    return most


def _widest(lines: Sequence[str]) -> int:
    return max(map(cell_len, lines), default=0)


def _place(program: Program) -> str:
    return f"py_backends/hello/{program.path.name}"
