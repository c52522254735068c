"""Networks between ranks: what a message costs, by the parameters of LogGP.

A message of k bytes takes `latency + k G` from its first byte in one rank to its last in another. A rank that sends
several at once is busy with each for the time `overhead`, while the bytes of the one before enter the network. So the
next one follows after the longer of the two:

    latency + k G + (messages - 1) max(overhead, k G)

That is the model LogGP. The overheads at both ends of a single message are a part of its latency here. (Alexandrov,
Ionescu, Schauser and Scheiman, LogGP: incorporating long messages into the LogP model, SPAA 1995.) It has no place for
what messages of different ranks do to each other: every rank has its own way to every other one.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from dataclasses import dataclass, replace

from py_backends.errors import WrongRequest
from py_backends.ranks.traffic import Round
from py_backends.results.report import Estimate

HERE = "here"
"""The network of ranks on this machine: its memory. It is measured."""
_OVERHEAD_OF_LATENCY = (0.25, 0.1, 0.5)
"""The overhead of a network that is given without one, as a part of its latency. Both ends of a message spend it, and
the way between them takes the rest."""


BySize = tuple[tuple[float, Estimate], ...]
"""Figures by sizes, the smallest first."""


def at(figures: BySize, size: float) -> Estimate:
    """The figure at a size: between two sizes by the logarithm, beyond all that of the nearest."""
    after = bisect([known for known, _ in figures], size)
    if after in (0, len(figures)):
        return figures[min(after, len(figures) - 1)][1]
    (less, one), (more, other) = figures[after - 1 : after + 1]
    return one.towards(other, math.log(size / less) / math.log(more / less))


@dataclass(frozen=True)
class Network:
    """What messages cost.

    latency: seconds of a small message, from rank to rank.
    overhead: seconds for which each further message keeps a rank busy.
    seconds_a_byte: by the size of a message in bytes.
    source: where the figures come from.
    """

    name: str
    latency: Estimate
    overhead: Estimate
    seconds_a_byte: BySize
    source: str

    def parts(self, each: Round) -> dict[str, Estimate]:
        """The seconds of rounds of messages, by what they depend on."""
        byte = at(self.seconds_a_byte, each.size / each.messages)
        longer = (
            max(0.0, 1 - byte.value * each.size / each.messages / self.overhead.value) if each.messages > 1 else 0.0
        )
        return {
            "latency": self.latency.times(each.times),
            "overhead": self.overhead.times(each.times * (each.messages - 1) * longer),
            "bandwidth": byte.times(each.times * each.size),
        }

    def with_half_latency(self) -> Network:
        """The same with half of the latency and of the overhead."""
        return replace(self, latency=self.latency.times(0.5), overhead=self.overhead.times(0.5))

    def with_double_bandwidth(self) -> Network:
        """The same with half of the time a byte."""
        return replace(self, seconds_a_byte=tuple((size, each.times(0.5)) for size, each in self.seconds_a_byte))


def _named(
    name: str, microseconds: tuple[float, float, float], gbytes: tuple[float, float, float], source: str
) -> Network:
    """A network by its latency and its bandwidth into one direction: what is likely, the least and the most."""
    latency = Estimate(*(each / 1e6 for each in microseconds))
    value, low, high = gbytes
    byte = Estimate(1e-9 / value, 1e-9 / high, 1e-9 / low)
    return Network(name, latency, _overhead(latency), ((1.0, byte),), source)


def _overhead(latency: Estimate) -> Estimate:
    part, least, most = _OVERHEAD_OF_LATENCY
    return Estimate(part * latency.value, least * latency.low, most * latency.high)


NETWORKS = {
    each.name: each
    for each in (
        _named(
            "ethernet-25g",
            (25, 15, 50),
            (2.9, 2.2, 3.0),
            "25 Gbit/s (IEEE 802.3by) less the headers of TCP and IP; latency of MPICH over TCP as "
            "gist.github.com/jfgrimm/3af692a5475bdd4ed836b5a18197a209 measured it",
        ),
        _named(
            "infiniband-hdr",
            (1.0, 0.9, 2.0),
            (24.0, 20.0, 25.0),
            "200 Gbit/s (InfiniBand Trade Association, roadmap); latency of Open MPI as "
            "gist.github.com/jfgrimm/3af692a5475bdd4ed836b5a18197a209 measured it between neighbours",
        ),
        _named(
            "infiniband-ndr",
            (1.0, 0.9, 2.0),
            (48.0, 40.0, 50.0),
            "400 Gbit/s (InfiniBand Trade Association, roadmap); latency as for infiniband-hdr",
        ),
        _named(
            "slingshot-11",
            (2.0, 1.6, 4.0),
            (23.0, 20.0, 25.0),
            "200 Gbit/s a port; latency estimated from that of Slingshot in De Sensi and others, An in-depth analysis "
            "of the Slingshot interconnect, SC20, arXiv 2008.08886",
        ),
        _named(
            "tofu-d",
            (1.2, 0.5, 2.0),
            (6.35, 6.0, 38.1),
            "one link of 6.8 GB/s, of which a rank has six; Ajima and others, The Tofu interconnect D, IEEE CLUSTER "
            "2018",
        ),
        _named(
            "aries",
            (1.2, 1.1, 2.0),
            (9.9, 8.0, 10.2),
            "osu_latency and osu_mbw_mr on a Cray XC40, gist.github.com/hppritcha/6a3acd0c192fcfd082bd543fc98e6fe6 and "
            "200bc7a2d4dfde709245d6ffa7b2b971",
        ),
    )
}
"""Networks by their names, each between two ranks that have it to themselves."""

_TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATES = {"MB/s": 1e6, "GB/s": 1e9, "Mbit/s": 1e6 / 8, "Gbit/s": 1e9 / 8}
_QUANTITY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([A-Za-z/]+)", re.ASCII)
_EXAMPLE = "latency=2us,bandwidth=12GB/s"


def network(text: str) -> Network | None:
    """The network of a name, or of parameters such as `latency=2us,bandwidth=12GB/s`; None for that of this machine.

    Raises WrongRequest, with one line that says what is missing, for anything else.
    """
    if text == HERE:
        return None
    if text in NETWORKS:
        return NETWORKS[text]
    if "=" not in text:
        known = ", ".join([*NETWORKS, HERE])
        raise WrongRequest(f"there is no network {text!r}: name one of {known}, or give {_EXAMPLE}")
    given = dict(part.strip().partition("=")[::2] for part in text.split(","))
    if unknown := sorted(set(given) - {"latency", "bandwidth", "overhead"}):
        raise WrongRequest(f"a network has latency, bandwidth and overhead, not {unknown[0]!r}: write {_EXAMPLE}")
    for needed in ("latency", "bandwidth"):
        if needed not in given:
            raise WrongRequest(f"the network {text!r} has no {needed}: write {_EXAMPLE}")
    latency = Estimate.exactly(_quantity("latency", given["latency"], _TIMES))
    overhead = _overhead(latency)
    if "overhead" in given:
        overhead = Estimate.exactly(_quantity("overhead", given["overhead"], _TIMES))
    byte = Estimate.exactly(1 / _quantity("bandwidth", given["bandwidth"], _RATES))
    return Network(text, latency, overhead, ((1.0, byte),), "as given")


def _quantity(what: str, text: str, units: dict[str, float]) -> float:
    found = _QUANTITY.fullmatch(text.strip())
    if found is None or found[2] not in units or not float(found[1]):
        raise WrongRequest(f"the {what} of a network is a number above 0 in {', '.join(units)}, not {text!r}")
    return float(found[1]) * units[found[2]]
