"""SimGrid's MPI, SMPI: it carries out what ranks exchange in simulated time, by algorithms of its own.

It knows nothing of `py_backends`: its program gets, for each rank, what a source for mpi states.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

import numpy as np

from py_backends import registry
from py_backends.ranks.blocks import Box, extent
from py_backends.ranks.exchanges import Allgatherv, Allreduce, Alltoallw, Exchange, Reduce_scatter, Sendrecv
from py_backends.ranks.layout import Distributed
from py_backends.ranks.networks import Network
from py_backends.ranks.ring import Shift

_SOURCE = Path(__file__).with_name("exchanges.c")
_LONGEST = 3000
MISSING = "no SMPI: apt-get install libsimgrid-dev"
_AS_DESCRIBED = {
    "network/model": "CM02",
    "network/latency-factor": 1,
    "network/bandwidth-factor": 1,
    "network/weight-S": 0,
    "network/TCP-gamma": 0,
    "network/crosstraffic": 0,
    "smpi/send-is-detached-thresh": 65536,
}
"""The network as it is described, without factors of SimGrid's own."""
_ALGORITHMS = {"coll-selector": "mpich", "allreduce": "rdb", "reduce_scatter": "mpich_pair"}
"""MPICH's. The selector of SMPI takes others for two: it reduces by nodes first, which takes minutes to set up for a
thousand ranks, and scatters long sums by recursive doubling."""
_IN_LITTLE_MEMORY = {
    "simulate-computation": "no",
    "privatization": "no",
    "shared-malloc": "global",
    "shared-malloc-blocksize": 1 << 26,
}


def there() -> bool:
    """Whether SMPI is installed."""
    return bool(shutil.which("smpirun") and shutil.which("smpicc"))


@functools.cache
def program(folder: Path) -> Path:
    """The program that carries out exchanges."""
    made = folder / "exchanges"
    compiler = shutil.which("smpicc")
    assert compiler, MISSING
    subprocess.run([compiler, "-O1", _SOURCE, "-o", made], check=True, capture_output=True)
    return made


def seconds(kernel: Distributed, ranks: int, sizes: tuple[int, ...], network: Network, folder: Path) -> float:
    """The simulated seconds of a launch's exchanges on so many ranks."""
    folder.mkdir()
    for rank in range(ranks):
        stated = kernel.exchanges(rank, ranks, sizes)
        lines = [_line(name, each, rank, kernel) for name, each in stated.items()]
        (folder / str(rank)).write_text("".join(f"{line}\n" for line in lines))
    platform, hosts = folder / "platform.xml", folder / "hosts"
    platform.write_text(_platform(ranks, network))
    hosts.write_text("".join(f"node-{rank}\n" for rank in range(ranks)))
    at_each_end = f"0:{network.overhead.value / 2}:0"
    of_smpi = _ALGORITHMS | _IN_LITTLE_MEMORY | dict.fromkeys(("os", "ois", "or"), at_each_end)
    given = _AS_DESCRIBED | {f"smpi/{name}": value for name, value in of_smpi.items()}
    command = ["smpirun", "-np", str(ranks), "-platform", platform, "-hostfile", hosts]
    command += [f"--cfg={name}:{value}" for name, value in given.items()]
    command += [program(folder.parent), folder]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LONGEST)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return float(ran.stdout.split()[-1])


def distributed(kernel: str, variant: str) -> Distributed:
    """A kernel's source for mpi, in float32."""
    text = registry.kernel_texts(kernel, "mpi")[variant]
    return Distributed(text.problem, text.load(), np.dtype(np.float32))


def _platform(ranks: int, network: Network) -> str:
    """Nodes that have a way of their own to each other one. Half of the latency is on either side of it."""
    latency = (network.latency.value - network.overhead.value) / 2
    bandwidth = 1 / network.seconds_a_byte[-1][1].value
    return f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node-" suffix="" radical="0-{ranks - 1}" speed="1Gf"
    bw="{bandwidth}Bps" lat="{latency}s" sharing_policy="SPLITDUPLEX" loopback_bw="1e15Bps" loopback_lat="0s"/>
</platform>
"""


def _line(name: str, each: Exchange, rank: int, kernel: Distributed) -> str:
    """What the program reads of an exchange."""
    head = f"{_colour(each, rank)} {each.times}"
    if isinstance(each, Allgatherv):
        in_place = int(hasattr(kernel.text, "needs"))
        return f"gather {head} {in_place} {_several([count * each.width for count in each.counts])}"
    if isinstance(each, Reduce_scatter):
        return f"scatter {head} {_several(each.counts)}"
    if isinstance(each, Allreduce):
        return f"reduce {head} {each.count}"
    if isinstance(each, Sendrecv):
        before, after = (-1 if neighbour is None else neighbour for neighbour in (each.before, each.after))
        return f"swap {head} {before} {after} {each.count * each.width}"
    if isinstance(each, Shift):
        before, after = ((rank + step) % len(each.counts) for step in (-1, 1))
        return f"shift {head} {before} {after} {each.sent(rank)}"
    assert isinstance(each, Alltoallw), f"the program knows no {name}"
    sent = [_common(each.sources[rank], target) * each.width for target in each.targets]
    received = [_common(source, each.targets[rank]) * each.width for source in each.sources]
    return f"spread {head} {_several(sent)} {' '.join(map(str, received))}"


def _several(sizes: list[int]) -> str:
    return f"{len(sizes)} {' '.join(map(str, sizes))}"


def _colour(each: Exchange, rank: int) -> int:
    """The same for all ranks of a line of the grid; -1 where all take part."""
    if each.along is None:
        return -1
    grid, dimension = each.along
    place = list(np.unravel_index(rank, grid))
    place[dimension] = 0
    return int(np.ravel_multi_index(place, grid))


def _common(one: Box, other: Box) -> int:
    """The elements that two boxes have in common."""
    counts = [max(0, min(a.stop, b.stop) - max(a.start, b.start)) for a, b in zip(one, other, strict=True)]
    return int(np.prod(counts, dtype=np.int64)) if all(extent(one)) else 0
