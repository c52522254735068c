"""SimGrid's MPI, SMPI: it carries out what ranks exchange in simulated time, by algorithms of its own.

It knows nothing of `py_backends`: its program gets, for each rank, the calls of MPI of a source.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from py_backends import registry
from py_backends.ranks.exchanges import Allgatherv, Allreduce, Alltoallw, Exchange, Exscan, Reduce_scatter, Sendrecv
from py_backends.ranks.layout import Distributed
from py_backends.ranks.networks import Network
from py_backends.ranks.outline import record

_SOURCE = Path(__file__).with_name("exchanges.c")
_LONGEST = 3000
_FLOAT = 4
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
        found = record(kernel, rank, ranks, sizes).exchanges
        # On a part of the ranks each call is a line, since all ranks have to make as many communicators.
        calls = [
            (at if among < ranks else -1, _words(each, first if among < ranks else -1))
            for at, (first, among, each) in enumerate(found)
        ]
        lines = [f"{len(list(equal))} {words}\n" for (_, words), equal in groupby(calls)]
        (folder / str(rank)).write_text("".join(lines))
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


def _words(each: Exchange, colour: int) -> str:
    """What the program reads of an exchange."""
    if isinstance(each, Allgatherv):
        return f"gather {colour} {int(each.in_place)} {_several(each.blocks)}"
    if isinstance(each, Reduce_scatter):
        return f"scatter {colour} {_several([share // _FLOAT for share in each.shares])}"
    if isinstance(each, Allreduce):
        return f"reduce {colour} {each.size // _FLOAT}"
    if isinstance(each, Exscan):
        return f"exscan {colour} {each.size // _FLOAT}"
    if isinstance(each, Sendrecv):
        return f"sendrecv {colour} {each.dest} {each.source} {each.size} {each.coming}"
    assert isinstance(each, Alltoallw), f"the program knows no {each}"
    return f"spread {colour} {_several(each.sent_to)} {' '.join(map(str, each.received_from))}"


def _several(sizes: Sequence[int]) -> str:
    return f"{len(sizes)} {' '.join(map(str, sizes))}"
