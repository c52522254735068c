"""The commands of the command line, a folder each, which no list names. Its files are found by their names.

    command.py    HELP, DESCRIPTION, EXAMPLE, add_options(parser), and run(options), which returns the exit code
    plan.py       what is run, if the command runs anything of its own
    analysis.py   what the results say
    table.py      print_report(report, out), if the command shows results of a run
    picture.py    TITLE, draw(report) and describe(report), if it has a picture of them

What commands share stands in the modules whose names begin with an underscore.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType


def names() -> list[str]:
    """The names of all commands: the folders here."""
    return sorted(module.name for module in iter_modules(__path__) if module.ispkg)


def part(command: str, name: str) -> ModuleType | None:
    """A file of a command, such as its `picture`; None if it has none, or there is no such command."""
    path = f"{__name__}.{command}.{name}"
    return import_module(path) if command in names() and find_spec(path) else None
