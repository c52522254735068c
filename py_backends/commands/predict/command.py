"""`predict`: how a kernel would scale on a cluster that is described, from what was measured here."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from py_backends.commands import _options, _outputs, _run

if TYPE_CHECKING:
    from py_backends.commands.predict.plan import Request

HELP = "say how a kernel would scale on a cluster: time, efficiency, communication and memory of each rank"
DESCRIPTION = (
    "Predicts how a kernel scales on many nodes of a network, a rank on each. It takes the times of a rank's work from "
    "this machine or from results, and what ranks exchange from the kernel's source for mpi."
)
EXAMPLE = "predict --kernel matmul --shape matmul=16384 --ranks 1,4,16 --network ethernet-25g"
_MOST_RANKS = 1 << 18
_RANKS = [1, 16, 1024, 10000]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    names = {"kernel": "matmul", "shape": "a thousand times the work of compare's", "budget": 40.0}
    _options.add(parser, "kernel", "variant", "dtype", "shape", **names)
    parser.add_argument(
        "--ranks", type=_ranks, metavar="N,N", default=_RANKS, help=f"numbers of ranks (default: {_RANKS})"
    )
    parser.add_argument(
        "--network",
        metavar="NETWORK",
        default="slingshot-11",
        help="a name, here, or latency=2us,bandwidth=12GB/s (default: %(default)s)",
    )
    parser.add_argument(
        "--node", type=Path, metavar="FILE", help="results of the machine that will compute (default: measured here)"
    )
    _options.add(parser, "threads", "launcher", "budget", *_options.VIEW_FILES, **names)


def run(options: argparse.Namespace) -> int:
    """Measure or read what a rank's work costs, predict, write files and print tables."""
    from py_backends.commands.predict.picture import draw
    from py_backends.commands.predict.plan import report
    from py_backends.commands.predict.table import print_report

    with _run.progress() as progress:
        found = report(_requested(options), progress)
    return _outputs.show_view(found, draw, print_report, options)


def _requested(options: argparse.Namespace) -> Request:
    from py_backends import registry
    from py_backends.commands.predict.plan import Request
    from py_backends.ranks.networks import network

    kernels = _run.names(options.kernel or ["matmul"]) or registry.kernel_names()
    return Request(
        kernels=kernels,
        variants=options.variant,
        dtypes=_run.dtypes(options.dtype),
        shapes=_run.shapes(options.shape),
        ranks=options.ranks,
        network=network(options.network),
        node=options.node,
        threads=options.threads,
        budget=options.budget,
        command=options.line,
    )


def _ranks(text: str) -> list[int]:
    return sorted(map(partial(_options.whole_number, least=1, most=_MOST_RANKS), _options.names_in(text)))
