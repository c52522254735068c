"""A ladder: how many times as fast as the first rung each one is, on a log scale, beside the published figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py_backends.commands.ladder.analysis import Climb, Step, climbs
from py_backends.commands.ladder.table import first, idea, published, share_of, title
from py_backends.display import layout, style, units
from py_backends.results.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "The ladder"
_WIDTH, _HEIGHT_OF_A_RUNG, _HEIGHT_OF_A_FRAME = 9.0, 0.62, 1.5
_BEGIN = 0.6
"""Where bars begin. It is below 1, so that the first rung also has a bar."""
_ROOM_FOR_WORDS = 80
"""By which factor the axis goes beyond the longest bar."""
_MEASURED, _PUBLISHED = "#0072B2", "#E69F00"
_BAR = 0.36


@style.settings()
def draw(report: Report) -> Figure:
    """A panel for each ladder: a bar for each rung, with its rate and per cent of the peak, and the published figure.

    Raises NothingToDraw if fewer than two rungs were timed, or not the first one.
    """
    found = _found(report)
    heights = [_HEIGHT_OF_A_FRAME + _HEIGHT_OF_A_RUNG * len(climb.steps) for climb in found]
    figure, panels = style.grid(_WIDTH, sum(heights), len(found), 1, height_ratios=heights)
    for climb, (axes,) in zip(found, panels, strict=True):
        _draw(axes, climb)
    return figure


def describe(report: Report) -> str:
    """What the picture shows, in words. Raises NothingToDraw as `draw` does."""
    sentences = []
    for climb in _found(report):
        source = f" Published: {climb.ladder.source}." if climb.ladder.source else ""
        said = [f"{_name(step, ' ')}: {_measured(step)}{_beside(step)}" for step in climb.steps]
        sentences.append(
            f"A ladder of {' '.join(title(climb).split())}, in times the speed of its first rung: {'; '.join(said)}."
            f"{source}"
        )
    return " ".join(sentences)


def _found(report: Report) -> list[Climb]:
    found = [climb for climb in climbs(report) if len(climb.steps) > 1 and climb.steps[-1].over_first]
    if not found:
        raise style.NothingToDraw("there is no ladder: its first rung and one more have to be timed")
    return found


def _draw(axes: Axes, climb: Climb) -> None:
    for at, step in enumerate(climb.steps):
        above, below = at - _BAR / 2, at + _BAR / 2
        ends = _interval(step)
        _bar(axes, above, _times(step), color=_MEASURED, label="measured here")
        axes.plot(ends, [above] * 2, color="black", linewidth=1.5, marker="|", markersize=6)
        _write(axes, above, max(ends), _measured(step))
        if step.rung and step.rung.published is not None:
            _bar(axes, below, step.rung.published, color=_PUBLISHED, label="published")
            words = _with_percent(f"{step.rung.published:,.0f}x", step.rung.published_percent)
            _write(axes, below, step.rung.published, words)
    for step in climb.baselines:
        if step.over_first:
            label = f"{step.row.backend}: {units.figure(step.over_first.speedup)}x"
            axes.axvline(step.over_first.speedup, color="#666666", linestyle=":", label=label)
    axes.set_xscale("log")
    longest = max([_times(step) for step in climb.steps] + [rung.published or 1 for rung in climb.ladder.rungs])
    axes.set_xlim(_BEGIN, longest * _ROOM_FOR_WORDS)
    published = f"\npublished: {climb.ladder.source}" if climb.ladder.source else ""
    axes.set_xlabel(f"times as fast as {_first(climb)}, with the 95% interval{published}")
    axes.set_yticks(range(len(climb.steps)), [_name(step, "\n") for step in climb.steps])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)
    axes.set_title(title(climb), loc="left", fontsize=10)
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    axes.legend(
        handles.values(),
        handles.keys(),
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(handles),
        frameon=False,
    )


def _bar(axes: Axes, at: float, times: float, **looks: Any) -> None:
    """A bar from below 1 to so many times."""
    axes.barh(at, times - _BEGIN, left=_BEGIN, height=_BAR, **looks)


def _write(axes: Axes, at: float, times: float, words: str) -> None:
    """Words to the right of the place for so many times."""
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    axes.annotate(words, (times, at), (7, 0), textcoords="offset points", va="center", fontsize=8, bbox=behind)


def _interval(step: Step) -> tuple[float, float]:
    """The 95% interval of a step's speed-up, or without one, the speed-up twice."""
    over = step.over_first
    if over is None or over.low is None or over.high is None:
        return _times(step), _times(step)
    return over.low, over.high


def _times(step: Step) -> float:
    return step.over_first.speedup if step.over_first else 1.0


def _measured(step: Step) -> str:
    times = f"{units.figure(step.over_first.speedup)}x" if step.over_first else "1x"
    said = _with_percent(times, step.percent_of_peak, share_of(step.row))
    return f"{said}, {layout.speed(step.row)}"


def _with_percent(said: str, share: float | None, of: str = "peak") -> str:
    return f"{said}, {units.percent(share)} of {of}" if share else said


def _beside(step: Step) -> str:
    """The published figures of this rung."""
    rung = step.rung
    if rung is None or rung.published is None:
        return ""
    return f" (published: {published(step)})"


def _name(step: Step, between: str) -> str:
    added = idea(step.rung) if step.rung else ""
    return f"{added}{between}{step.row.backend} {step.row.variant}"


def _first(climb: Climb) -> str:
    row = climb.steps[0].row
    name = first(climb.ladder)
    return f"{name} at {units.short_shape(row.shape)}" if row.shape != climb.shape else name
