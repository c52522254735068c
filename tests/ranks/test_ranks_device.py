"""Ranks as a device: where arrays come from and stay, what is told of communication, one command among many ranks."""

from __future__ import annotations

import copy
import errno
import gc
import json
import math
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import started

import py_backends as pb
from py_backends import registry
from py_backends.contract import Communication, Device, Launch
from py_backends.errors import BackendUnavailable
from py_backends.number_formats import FORMATS
from py_backends.ranks import SERVED, endings, keeper, local
from py_backends.ranks.engine import engine
from py_backends.ranks.world import RanksEnded, World
from py_backends.system import interpreter, shared_memory, surroundings
from py_backends.system.shared_memory import SharedMemory, behind

FLOAT32 = np.dtype(np.float32)
TWO = {"backend": "mpi", "target": "2x1"}
pytestmark = [pytest.mark.slow, pytest.mark.mpi]


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    yield registry.backend("mpi").open("2x1", 2)
    gc.collect()


def prepared(device: Device, kernel: str, variant: str) -> Launch:
    return device.prepare(registry.kernel_texts(kernel, "mpi")[variant], FLOAT32)


def drawn(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


class TestSharedMemory:
    """How a client finds out that the first rank can map an array."""

    def test_an_array_is_found_in_the_memory_behind_it(self) -> None:
        memory = SharedMemory.create(4096)
        array = memory.bytes[64:128].view(FLOAT32)
        place = behind(array)
        assert place is not None
        assert place.memory is memory
        assert place.first == 64
        memory.close()
        assert behind(array) is None, "its descriptor is gone"

    def test_an_array_elsewhere_is_not(self) -> None:
        memory = SharedMemory.create(4096)
        assert behind(np.ones(5)) is None
        assert behind(memory.bytes[:0]) is None
        memory.close()


class TestArraysOnRanks:
    """What `to="device"` leaves there."""

    A, X = drawn(37, 23), drawn(23, 5)

    def test_a_result_stays_and_is_taken_again(self) -> None:
        y = pb.matmul(self.A, self.X, **TWO, to="device")
        assert (y.shape, y.dtype) == ((37, 5), FLOAT32)
        z = pb.matmul(y.scatter(self.A.T), y, **TWO, to="device")
        np.testing.assert_allclose(y.get(), self.A @ self.X, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(z.get(), self.A.T @ (self.A @ self.X), rtol=1e-3, atol=1e-3)

    def test_one_array_may_lie_in_the_blocks_of_either_operand(self) -> None:
        square = drawn(9, 9)
        on_ranks = pb.matmul(square, np.eye(9, dtype=np.float32), **TWO, to="device")
        for _ in range(2):
            left = pb.matmul(on_ranks, drawn(9, 3), **TWO)
            right = pb.matmul(drawn(3, 9), on_ranks, **TWO)
            np.testing.assert_allclose(left, square @ drawn(9, 3), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(right, drawn(3, 9) @ square, rtol=1e-4, atol=1e-5)

    def test_a_result_goes_into_an_array_on_ranks(self) -> None:
        out = pb.vecadd(self.A[0], self.A[0], **TWO, to="device")
        assert pb.vecadd(self.A[1], self.A[2], **TWO, out=out) is out
        np.testing.assert_array_equal(out.get(), self.A[1] + self.A[2])

    def test_an_array_that_no_kernel_has_seen_comes_back(self) -> None:
        made = pb.vecadd(self.A[0], self.A[0], **TWO, to="device")
        np.testing.assert_array_equal(made.scatter(self.A).get(), self.A)

    @pytest.mark.parametrize(
        ("wrong", "what"),
        [
            (np.array(["a", "b"]), "an array of <U1"),
            (np.zeros(2, [("x", np.float32), ("y", np.float64)]), "an array of "),
            (np.zeros(2, object), "an array of object"),
            (np.zeros(2, np.complex64), "an array of complex64"),
            (np.zeros(2, ">f4"), "an array of >f4"),
            (np.ma.masked_array(np.zeros(2, np.float32), [True, False]), "MaskedArray"),
            ([1.0, 2.0], "list"),
            (None, "NoneType"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_what_is_no_array_for_ranks_is_refused_and_costs_none_of_them(self, wrong: Any, what: str) -> None:
        """It ended all ranks, and every array on them was lost."""
        there = pb.vecadd(self.A[0], self.A[0], **TWO, to="device")
        with pytest.raises(TypeError, match=rf"^scatter takes a NumPy array of float32, .* byte order, not {what}"):
            there.scatter(wrong)
        np.testing.assert_array_equal(there.get(), 2 * self.A[0])

    @pytest.mark.parametrize("name", FORMATS)
    def test_every_number_format_comes_back(self, name: str) -> None:
        there = pb.vecadd(self.A[0], self.A[0], **TWO, to="device")
        array = np.arange(6).astype(name).reshape(2, 3)
        back = there.scatter(array).get()
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
    def test_no_two_objects_have_one_memory(self, copied: Callable[[Any], Any]) -> None:
        """The first of them to go released it for both, and the other's next use ended all ranks."""
        there = pb.vecadd(self.A[0], self.A[0], **TWO, to="device")
        with pytest.raises(TypeError, match=r"^an array on ranks cannot be copied .*: get\(\) copies it to NumPy$"):
            copied(there)
        np.testing.assert_array_equal(there.get(), 2 * self.A[0])

    def test_what_is_scattered_for_no_kernel_yet_is_laid_out_when_one_comes(self) -> None:
        there = pb.matmul(self.A, self.X, **TWO, to="device")
        product = pb.matmul(there.scatter(self.A.T), there, **TWO)
        np.testing.assert_allclose(product, self.A.T @ (self.A @ self.X), rtol=1e-3, atol=1e-3)

    def test_it_is_refused_elsewhere_with_what_to_do(self) -> None:
        there = pb.vecadd(self.A[0], self.A[0], **TWO, to="device")
        with pytest.raises(TypeError, match=r"^a: it lies on other ranks, .*: get\(\) copies it to NumPy$"):
            pb.vecadd(there, there, backend="mpi", target="1x1")
        with pytest.raises(TypeError, match=r"^b: it lies on other ranks, of another target or number of threads: "):
            pb.vecadd(self.A[0], there, **TWO, threads=1)
        with pytest.raises(TypeError, match=r"numpy cannot reach: copy it first: a\.get\(\)$"):
            pb.vecadd(there, there, backend="numpy")

    def test_staging_memory_that_could_not_grow_is_not_used_again(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """It was closed and still there: the next calls sent no array, and then closed a user's file."""
        there = pb.vecadd(self.A[0], self.A[0], **TWO, to="device")
        with monkeypatch.context() as failing:
            failing.setattr(shared_memory, "_map", _no_memory)
            with pytest.raises(MemoryError):
                there.scatter(np.ones(3_000_000))
        file = (tmp_path / "a_users").open("w+b", buffering=0)  # it gets the descriptor that was closed
        for each in (self.A, np.arange(4_000_000.0)):
            np.testing.assert_array_equal(there.scatter(each).get(), each)
        file.write(b"kept")
        file.close()
        assert (tmp_path / "a_users").read_bytes() == b"kept"

    def test_its_memory_goes_with_it(self) -> None:
        there = pb.vecadd(self.A[0], self.A[0], **TWO, to="device")
        device, number = there.device, there.number
        del there
        gc.collect()
        pb.vecadd(self.A[0], self.A[0], **TWO)
        with pytest.raises(RuntimeError, match="KeyError"):
            device.download(number, np.empty(23, np.float32))


class TestStaging:
    """The memory through which the first rank gets arrays."""

    @pytest.mark.parametrize("ending", ["killed", "closed", "forgotten"])
    def test_it_goes_with_the_ranks(self, ending: str) -> None:
        """A copy of the largest array was left with every ranks that had ended."""
        gc.collect()
        before = _memory_held()
        world = World(1, 1)
        world.ask("upload", np.ones(3_000_000), buffer=world.new_number(), dtype="float64", place=None)
        assert len(_memory_held()) > len(before)
        if ending == "killed":
            os.kill(world.processes[0], signal.SIGKILL)
            with pytest.raises(RanksEnded):
                world.ask("release", buffers=[])
        elif ending == "closed":
            world.close()
        else:
            del world
            gc.collect()
        assert _memory_held() == before


def _no_memory(*_: Any, **_named: Any) -> Any:
    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


def _memory_held() -> list[str]:
    """The descriptors and mappings of shared memory in this process."""
    descriptors = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return [each for each in descriptors + maps if "memfd:py-backends (" in each]


class TestBuffers:
    """Arrays that come with a guard zone, and arrays that come for no kernel yet."""

    @pytest.mark.parametrize("placed", [True, False])
    def test_what_lies_behind_an_array_comes_back_as_it_was(self, device: Device, placed: bool) -> None:
        launch, sizes, count = prepared(device, "vecadd", "lecture"), (11,), 11
        zoned = [np.arange(16, dtype=np.float32), np.arange(16, dtype=np.float32), np.full(16, -7, np.float32)]
        buffers = device.place(launch, sizes, zoned, filled=True) if placed else list(map(device.upload, zoned))
        launch(buffers, sizes)
        found = np.zeros(16, np.float32)
        device.download(buffers[2], found)
        np.testing.assert_array_equal(found[:count], 2 * zoned[0][:count])
        np.testing.assert_array_equal(found[count:], zoned[2][count:])
        device.download(buffers[0], found)
        np.testing.assert_array_equal(found, zoned[0])
        for buffer in buffers:
            device.release(buffer)


class TestCommunication:
    """What ranks say of what they sent."""

    @pytest.mark.parametrize(
        ("variant", "sizes", "sent"),
        [
            ("lecture", (64, 8, 40), 32 * 40 * 4),  # half of a
            ("tuned", (8, 64, 8), 4 * 8 * 4),  # half of a, the smallest matrix
            ("tuned", (64, 8, 8), 8 * 4 * 4),  # half of b
            ("tuned", (8, 8, 64), 4 * 8 * 4),  # half of the sums
        ],
    )
    def test_bytes_are_those_that_the_others_lack(
        self, device: Device, variant: str, sizes: tuple[int, int, int], sent: int
    ) -> None:
        m, n, k = sizes
        launch = prepared(device, "matmul", variant)
        buffers = device.place(launch, (m, n, k), [drawn(size) for size in (m * k, k * n, m * n)])
        launch(buffers, (m, n, k))
        said = device.communication()
        assert isinstance(said, Communication)
        assert said.bytes_sent == (sent, sent)
        assert 0 < said.seconds <= (device.event_seconds() or 0)
        for buffer in buffers:
            device.release(buffer)

    @pytest.mark.parametrize(
        ("kernel", "sizes", "sent"),
        [
            ("dot", (1001,), (4, 4)),  # the sum of each
            ("transpose", (10, 30), (5 * 15 * 4,) * 2),  # a quarter: columns of one are rows of the other
            ("heat", (10, 30, 3), (3 * 30 * 4,) * 2),  # a row before each step
            ("nbody", (10, 30), (15 * 4 * 4,) * 2),  # its half of the bodies, four numbers each
            ("attention", (10, 6, 30), (15 * 2 * 6 * 4,) * 2),  # its half of the keys and of the values
        ],
    )
    def test_no_rank_sends_what_nobody_needs(
        self, device: Device, kernel: str, sizes: tuple[int, ...], sent: tuple[int, int]
    ) -> None:
        """The result would be right if blocks of ranks overlapped, or more were exchanged."""
        launch, problem = prepared(device, kernel, "lecture"), registry.kernel_texts(kernel, "mpi")["lecture"].problem
        arrays = [drawn(math.prod(shape)) for shape in problem.shapes(sizes)]
        buffers = device.place(launch, sizes, arrays)
        launch(buffers, sizes)
        said = device.communication()
        assert isinstance(said, Communication)
        assert said.bytes_sent == sent
        for buffer in buffers:
            device.release(buffer)


class TestKernels:
    """Those of plug-ins, which need not be fit for ranks."""

    def test_one_that_no_rank_can_compute_lacks_a_source_for_numpy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The fix was `make`, which changes nothing there."""
        monkeypatch.setattr(registry, "texts_in", lambda *_: {})
        with pytest.raises(pb.BackendUnavailable) as raised:
            local.LocalKernels(1).prepare("vecadd", FLOAT32)
        assert re.search("vecadd .*numpy .*float32", raised.value.fix or "")


class TestThreads:
    """A target has its number of threads in its name."""

    @pytest.mark.parametrize(("threads", "said"), [(1, "ranks x threads is 2 where 1 was asked for; "), (2, "")])
    def test_a_row_says_that_it_keeps_to_its_own(self, threads: int, said: str) -> None:
        """`compare --threads 1` ran two ranks, and did not say so."""
        device = registry.backend("mpi").open("2x1", threads)
        prepared(device, "vecadd", "lecture")
        assert device.obeys_threads is (threads == 2)
        assert (device.note or "").partition("each rank")[0] == said


class TestTargets:
    """More ranks or threads than any machine has."""

    @pytest.mark.parametrize("name", ["5000x1", "1x5000", "0x1", "2x", "x", "1\u0662x1"])
    def test_they_are_no_target(self, name: str) -> None:
        assert registry.backend("mpi").target(name) is None
        assert registry.backend("mpi").target("4096x1") is not None

    def test_those_of_a_launcher_are_missing_with_the_reason(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(SERVED, "5000x1:/nowhere")
        too_many, one = registry.backend("mpi").targets()
        assert not too_many.available
        assert re.findall(r"\d+(?:x\d+)?", too_many.reason or "") == ["5000x1", "4096"]
        assert one.available


class TestOneCommand:
    """Under a launcher."""

    def test_the_ranks_of_a_launcher_make_one_report(self, tmp_path: Path) -> None:
        found, path = engine(), tmp_path / "r.json"
        command = ["compare", "--backend", "numpy,mpi", "--kernel", "vecadd", "--shape", "vecadd=999", "--budget", "3"]
        done = subprocess.run(
            [*found.command(2), *interpreter.command("py_backends", *command, "--json", str(path))],
            env=surroundings.environment(found.environment),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("rows ran") == 1
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        by_target = {row["target"]: row for row in rows if row["backend"] == "mpi"}
        assert {row["status"] for row in rows} == {"ok"}
        assert [len(row["communication"]["bytes_sent"]) for row in by_target.values()] == [2, 1]
        assert all("launcher" not in (row["note"] or "") for row in rows)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
    def test_a_launcher_that_is_ended_leaves_nothing_of_ours(self, number: signal.Signals, tmp_path: Path) -> None:
        """The first rank left a folder with its socket, if it was killed before it had removed that.

        SIGTERM, as a scheduler sends it at a job's end, costs no result: it ended the ranks, and the command with them.
        """
        found, others, of_mpi, path = engine(), addresses(), left_by_mpi(), tmp_path / "r.json"
        command = ["compare", "--backend", "numpy,mpi", "--kernel", "vecadd", "--budget", "60", "--json", str(path)]
        mark = uuid.uuid4().hex
        process = subprocess.Popen(
            [*found.command(2), *interpreter.command("py_backends", *command)],
            env=surroundings.environment({**found.environment, "TMPDIR": str(tmp_path), started._MARK: mark}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: any("py_backends.workers.session" in each.cmdline() for each in started._of_run(mark)))
        process.send_signal(number)
        code = process.wait(60)
        wait_until(lambda: not addresses() - others)
        assert code != 0  # 130 is the command's. MPICH's launcher passes it on, and that of Open MPI ends with 1.
        assert path.exists() == (number == signal.SIGTERM)
        assert not path.exists() or json.loads(path.read_text(encoding="utf-8"))["interrupted"]
        left = {each for each in tmp_path.glob("py-backends-*") if not each.name.startswith("py-backends-workers-")}
        assert not left, "folders of workers go with the next comparison, if nobody could remove them"
        for path in left_by_mpi() - of_mpi:
            path.unlink(missing_ok=True)


def test_another_user_who_listens_in_their_place_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"py-backends-of-a-test-{os.getpid()}"
    monkeypatch.setenv(SERVED, f"2x1:{name}")
    monkeypatch.setattr(endings, "other_end", lambda _: (1, os.geteuid() + 1))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        with pytest.raises(BackendUnavailable, match="another user listens where the ranks of this command should"):
            World(2, 1)
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.recv(1) == b""


def left_by_mpi() -> set[Path]:
    """What MPICH leaves of any program that is killed."""
    return {*map(Path, keeper._descriptions()), *keeper._SHARED.glob("mpich_shm_*")}


def addresses() -> set[str]:
    """Where the first ranks of launchers listen."""
    return set(re.findall(r"@py-backends-[0-9a-f]{12}\n", Path("/proc/net/unix").read_text(encoding="utf-8")))


def wait_until(state: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not state() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert state()


def test_processes_of_ours_find_the_same_package() -> None:
    code = "import py_backends, sys; sys.stdout.write(py_backends.__file__)"
    found = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=surroundings.environment({"ONE": "1"}),
        cwd=Path(os.__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == pb.__file__
