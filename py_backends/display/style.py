"""What pictures share: their size, letters and colours, and how they become files."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from py_backends.errors import WrongRequest
from py_backends.install import pip_install
from py_backends.system.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666")
"""Colours that people with any colour vision tell apart: M. Okabe and K. Ito, Color Universal Design (2008)."""
_MARKERS = "osD^vPX"
_DOTS_PER_INCH = 150
_SAID_OF_SVG = ("Creator", "Date", "Format", "Type")
"""What matplotlib writes into an SVG file about the file. A page has no use for it."""
_BACKEND = "MPLBACKEND"
_SETTINGS: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.fonttype": "none",  # letters stay letters, for searching and for the reader's own font
    "svg.hashsalt": "py-backends",  # the same picture gives the same file
}


class NothingToDraw(WrongRequest):
    """The results hold too little for a picture. Says what is missing."""


class Mark(NamedTuple):
    """How a name is drawn wherever it appears in a picture."""

    colour: str
    marker: str


def marks(names: Iterable[str]) -> dict[str, Mark]:
    """A mark for each name. No two share both colour and marker."""
    distinct = list(dict.fromkeys(names))
    return {
        name: Mark(_COLOURS[at % len(_COLOURS)], _MARKERS[(at + at // len(_COLOURS)) % len(_MARKERS)])
        for at, name in enumerate(distinct)
    }


def new(width: float = 8.0, height: float = 5.0) -> tuple[Figure, Axes]:
    """An empty picture of so many inches, with one pair of axes."""
    figure, panels = grid(width, height, 1, 1)
    return figure, panels[0][0]


def grid(width: float, height: float, rows: int, columns: int, **layout: Any) -> tuple[Figure, list[list[Axes]]]:
    """An empty picture with rows of axes; `layout` goes to matplotlib's `Figure.subplots`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **layout).tolist()


def stacked(width: float, heights: Sequence[float]) -> tuple[Figure, list[SubFigure]]:
    """An empty picture of parts below one another, of so many inches each. Each has its axes by itself."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    return figure, figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0].tolist()


@contextmanager
def settings() -> Iterator[None]:
    """Pictures are drawn and written within it: by matplotlib's own settings and ours, whatever a user's say.

    Raises WrongRequest, with the fix, if matplotlib is missing.
    """
    check_library()
    from matplotlib import style

    with style.context(["default", _SETTINGS]):
        yield


def check_library() -> None:
    """Raise WrongRequest, with the fix, if matplotlib is missing."""
    try:
        _import_library()
    except ImportError as error:
        raise WrongRequest(f"pictures need matplotlib ({error}): {pip_install('pictures')}") from error


def _import_library() -> None:
    """Import it even if MPLBACKEND names a module that is not here, as in a shell of Jupyter: we open no window.

    It would raise ValueError, and be left half imported. So the variable is applied after it, as it does by itself.
    """
    backend = None if "matplotlib" in sys.modules else os.environ.pop(_BACKEND, None)
    try:
        import matplotlib.figure
    finally:
        if backend is not None:
            os.environ[_BACKEND] = backend
    if backend:
        with suppress(ValueError):
            matplotlib.rcParams["backend"] = backend


@settings()
def save(figure: Figure, path: Path) -> None:
    """Write a picture as the ending of its name says, .png or .svg. OSError if it cannot be written."""
    content, kind = io.BytesIO(), path.suffix.lower().removeprefix(".")
    metadata = {"Date": None} if kind == "svg" else None
    figure.savefig(content, format=kind, dpi=_DOTS_PER_INCH, metadata=metadata)
    write_whole(path, content.getvalue())


@settings()
def svg(figure: Figure, name: str = "") -> str:
    """A picture as an SVG element for a page.

    Black becomes the colour of the words around it. White becomes the page's colour, its CSS variable `--page`. So it
    can be read on dark pages, too. `name` begins every id in it, so that no two pictures of a page share an id.
    """
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata=dict.fromkeys(_SAID_OF_SVG), transparent=True)
    element = text.getvalue().partition("<svg")[2]
    element = element.replace("#000000", "currentColor").replace("#ffffff", "var(--page, #ffffff)")
    if name:
        element = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{name}-", element)
    return f'<svg fill="currentColor"{element}'
