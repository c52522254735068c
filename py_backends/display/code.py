"""Source code for readers: its language, its colours, and how its lines are wrapped."""

from __future__ import annotations

from pathlib import Path

from rich.syntax import Syntax
from rich.text import Text

from py_backends.kernel_text import KernelText

LANGUAGES = {".py": "python", ".cpp": "cpp", ".cu": "cuda", ".cl": "c"}
"""Pygments' name for the language of a file."""
_COMMENT = {".py": "# "}
"""How a comment line begins. In other languages it is as in C++."""
_INDENT = 4
"""How much further to the right the rest of a wrapped line of code begins."""


def comment_of(text: KernelText) -> str:
    """How a comment line begins in a source."""
    return _COMMENT.get(text.path.suffix, "// ")


def coloured(source: str, path: Path) -> Text:
    """A source in the colours of the terminal, as its file's name says."""
    syntax = Syntax("", LANGUAGES.get(path.suffix, "text"), theme="ansi_dark", background_color="default")
    code = syntax.highlight(source)
    code.rstrip()
    return code


def rest_begins(line: str, comment: str) -> int:
    """How far to the right the rest of a wrapped line begins. That of a comment begins below its words."""
    indent = len(line) - len(line.lstrip())
    return indent + (len(comment) if line.startswith(comment, indent) else _INDENT)
