"""Predicted efficiency against the number of ranks, with its interval, and how much of the time is communication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from py_backends.commands.predict.table import groups, half, title
from py_backends.display import style
from py_backends.ranks.networks import HERE
from py_backends.results.report import Prediction, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Prediction"
_WIDTH, _HEIGHT = 12.4, 3.6
_MOST = 8
"""The most panels in one picture."""


@style.settings()
def draw(report: Report) -> Figure:
    """A panel for each kernel, dtype and kind of scaling. Raises NothingToDraw without predictions."""
    found = _chosen(report)
    figure, panels = style.grid(_WIDTH, _HEIGHT * -(-len(found) // 2), -(-len(found) // 2), 2)
    axes = [each for row in panels for each in row]
    for group, panel in zip(found, axes, strict=False):
        _draw(panel, group)
    for unused in axes[len(found) :]:
        unused.set_axis_off()
    return figure


def describe(report: Report) -> str:
    """What the picture shows, in words. Raises NothingToDraw as `draw` does."""
    sentences = ["Predicted efficiency and communication against the number of ranks."]
    for group in _chosen(report):
        said = [
            f"{each.ranks} ranks {100 * each.efficiency.value:.0f}%, communication {100 * each.communicating:.0f}%"
            for each in group
        ]
        sentences.append(f"{title(group)}: {'; '.join([*said, *half(group)])}.")
    return " ".join(sentences)


def _chosen(report: Report) -> list[list[Prediction]]:
    found = groups(report.predictions)
    if not found:
        raise style.NothingToDraw("the results hold no prediction: run py-backends predict")
    return found[:_MOST]


def _draw(axes: Axes, group: Sequence[Prediction]) -> None:
    ranks = [each.ranks for each in group]
    efficiency, communication = style.marks(["efficiency", "communication"]).values()
    axes.fill_between(
        ranks,
        [100 * each.efficiency.low for each in group],
        [100 * each.efficiency.high for each in group],
        color=efficiency.colour,
        alpha=0.2,
        linewidth=0,
    )
    for mark, name, values in (
        (efficiency, "efficiency", [100 * each.efficiency.value for each in group]),
        (communication, "communication, of the time", [100 * each.communicating for each in group]),
    ):
        axes.plot(ranks, values, color=mark.colour, marker=mark.marker, markersize=4.5, linewidth=1, label=name)
    axes.axhline(50, color="black", linewidth=1, linestyle=":")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel("ranks, one a node" if group[0].network != HERE else "ranks of this machine")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("%")
    axes.set_title(title(group).replace("  strong", "\nstrong").replace("  weak", "\nweak"), loc="left", fontsize=10)
    axes.legend(loc="best", fontsize=8)
