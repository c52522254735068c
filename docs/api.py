"""Makes the API reference from the docstrings: `make docs`, or `python docs/api.py FOLDER`.

What users call and get back, what those who write a backend or a kernel derive from, and the formulas by which results
are judged, with their sources. It needs pdoc (the extra `docs`).
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

import pdoc
import pdoc.render

import py_backends
from py_backends import registry

MODULES = ("py_backends", "py_backends.contract", "py_backends.harness.results", "py_backends.harness.doctor")
"""The functions; the ground floor of backends and kernels; what `compare` and `backends` return."""


def main(folder: Path) -> None:
    """Write the pages to a folder."""
    for name in py_backends.__all__:
        getattr(py_backends, name)  # what is found when it is first used is not there for others to see before
    problems = [type(registry.problem(kernel)).__module__ for kernel in registry.kernel_names()]
    # To type checkers a kernel's function is an object that can be called, to say in one line what it returns when.
    warnings.filterwarnings("ignore", "Error processing type stub .* Stub is a variable, but target is a function")
    # Of a named tuple pdoc looks the annotations up where Python makes such classes, and not where this one is.
    warnings.filterwarnings("ignore", r"Error parsing type annotation .* for py_backends\.\S+\.BackendTarget\.__init__")
    pdoc.render.env.filters["to_markdown"] = as_markdown
    pdoc.render.configure(show_source=False)
    pdoc.pdoc(
        *MODULES, *problems, r"!py_backends\.(?!contract|errors|kernel_text|harness|kernels).*", output_directory=folder
    )


def as_markdown(docstring: str) -> str:
    """A docstring whose lines `name: what it is` are a list."""
    lines: list[str] = []
    for line in docstring.splitlines():
        described = re.fullmatch(r"(\w+(?:, \w+)*): (.+)", line)
        if described and lines and lines[-1] and not lines[-1].startswith(("- ", " ")):
            lines.append("")
        lines.append(f"- **{described[1]}**: {described[2]}" if described else line)
    return "\n".join(lines)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
