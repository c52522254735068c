"""Workers that cannot be ended, and what those are started with that nobody stops."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import CLONE, LONGEST, environment

import py_backends as pb
from py_backends.contract import Target
from py_backends.harness.failures import fail
from py_backends.harness.running_row import RunningRow
from py_backends.results.spec import Spec
from py_backends.system import interpreter, temporary
from py_backends.system.channel import Channel
from py_backends.system.shared_memory import SharedMemory
from py_backends.workers import process
from py_backends.workers.runner import Runner


def test_a_worker_that_no_signal_reaches_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that a driver keeps within the kernel of the system."""
    worker = process.Worker()
    kill = worker.kill
    monkeypatch.setattr(worker, "kill", lambda: None)
    monkeypatch.setattr(process, "_ENDS_WITHIN", 0.01)
    worker.close()
    assert worker._process.poll() is None
    kill()
    worker._process.wait(10)


@pytest.mark.parametrize(("stopped_between", "policies"), [(True, []), (False, ["OMP_WAIT_POLICY=passive"])])
def test_only_a_worker_that_is_not_stopped_has_a_pool_that_sleeps(
    stopped_between: bool, policies: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timed kernel finds its threads as its user's would be."""
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    worker = process.Worker(stopped_between=stopped_between)
    environment = _environment(worker.process)
    worker.close()
    assert [each for each in environment if each.startswith("OMP_WAIT_POLICY=")] == policies


@pytest.mark.slow
class TestWhoEndsOnce:
    """A worker that is killed is started again where nobody has timed anything yet, and its rows say so."""

    @pytest.mark.parametrize(
        ("during", "number", "name"),
        [("prepare", signal.SIGKILL, "SIGKILL"), ("first_launch", signal.SIGSEGV, "SIGSEGV"), ("unload", 9, "SIGKILL")],
    )
    def test_the_note_says_by_what(self, during: str, number: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """`unload` is asked when nobody waits for the answer."""
        ask, killed = Runner._ask, list[int]()

        def once(self: Runner, worker: process.Worker, do: str, **arguments: Any) -> Any:
            if (self.backend, do) == ("python", during) and not killed:
                killed.append(worker.process)
                os.kill(worker.process, number)
            return ask(self, worker, do, **arguments)

        monkeypatch.setattr(Runner, "_ask", once)
        report = pb.compare(["vecadd"], ["numpy", "python"], shapes={"vecadd": [(509,)]}, budget=0.5)
        notes = {row.backend: (row.status, row.note or "") for row in report.rows}
        assert len(killed) == 1
        assert notes["python"][0] == "ok"
        assert name in notes["python"][1]
        assert "worker" not in notes["numpy"][1]


LEAVES_FILES = """
    import os, tempfile
    from py_backends.workers.serve import serve

    class Session:
        def leave(self, descriptors):
            left = os.path.join(os.environ["TMPDIR"], "clang++-1234")
            open(left, "w").close()
            return {"left": left, "own": tempfile.gettempdir()}

    serve(Session())
"""


@pytest.fixture
def leaving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Variables for a worker that leaves a file as compilers do; temporary files lie in a folder of the test."""
    (tmp_path / "leaves_files.py").write_text(textwrap.dedent(LEAVES_FILES), encoding="utf-8")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(temporary.tempfile, "tempdir", str(tmp_path / "tmp"))
    temporary._folder_of_process.cache_clear()
    yield {"PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path / "tmp")}
    temporary._folder_of_process.cache_clear()


class TestTemporaryFiles:
    @pytest.mark.parametrize("killed", [False, True])
    def test_of_a_worker_are_gone_with_it(self, killed: bool, leaving: dict[str, str]) -> None:
        worker = process.Worker(leaving, module="leaves_files")
        told = worker.ask("leave")
        assert Path(told["left"]).is_file()
        assert told["own"] == leaving["TMPDIR"], "what Python keeps there stays"
        if killed:
            worker.kill()
        worker.close()
        assert not Path(told["left"]).parent.exists()

    def test_of_a_harness_that_was_killed_are_gone_with_the_next(self, leaving: dict[str, str]) -> None:
        """But not those of one that is alive."""
        script = """
            import os, signal, sys
            from py_backends.workers.process import Worker
            print(Worker(module="leaves_files").ask("leave")["left"])
            sys.stdout.flush()
            sys.stdin.read()
        """
        command = [sys.executable, "-c", textwrap.dedent(script)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=CLONE, env=environment(**leaving), **pipes) as other:  # type: ignore[call-overload]
            left = Path(other.stdout.readline().strip())
            assert temporary.folder()
            assert left.is_file()
            other.kill()
        assert left.is_file()
        temporary._folder_of_process.cache_clear()  # as in a new process
        assert temporary.folder()
        assert not left.exists()

    def test_where_none_can_be_made_a_worker_starts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(temporary.tempfile, "tempdir", "/proc/none")
        temporary._folder_of_process.cache_clear()
        worker = process.Worker()
        worker.close()
        assert worker._folder is None


def test_no_handler_of_a_fork_runs_when_workers_start() -> None:
    """As those of Numba and TBB, which complain. dpctl makes Python fork as in this test."""
    script = """
        import ctypes, subprocess
        from py_backends.system import machine
        from py_backends.workers import process
        subprocess._USE_VFORK = False
        called = []
        handler = ctypes.CFUNCTYPE(None)(lambda: called.append(1))
        ctypes.CDLL(None).__register_atfork(handler, None, None, None)
        process.Worker().close()
        machine.describe()
        assert not called
        assert not subprocess._USE_VFORK
        subprocess.run(["true"])
        assert called, "the test shows nothing"
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=CLONE, env=environment(), check=True)


class TestTooManyFiles:
    """The limit of open files is another one than that of memory."""

    @pytest.fixture(autouse=True)
    def _few(self) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        yield
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def test_memory_that_cannot_be_shared_says_so(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = os.dup(0)
        os.close(free)
        for more in 0, 1:  # none for the memory, and none for its mapping
            resource.setrlimit(resource.RLIMIT_NOFILE, (free + more, hard))
            with pytest.raises(OSError, match="open files") as raised:
                SharedMemory.create(100)
            row = RunningRow(Spec("vecadd", "numpy", "cpu", "lecture", "float32", (9,)), Target("cpu"), None)
            fail(row, raised.value)
            assert "ulimit -n" in str(row.fix)

    def test_descriptors_that_were_lost_on_their_way_say_so(self) -> None:
        ours, theirs = Channel.pair()
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        ours.send({"a": 1}, [0, 1])
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
        with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
            theirs.receive()
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        ours.send({"a": 2})
        assert theirs.receive() == ({"a": 2}, [])
        for end in ours, theirs:
            end.close()


def test_a_killed_worker_leaves_no_registration_of_its_openmp_behind() -> None:
    """Intel's, which MKL_THREADING_LAYER=INTEL loads. Two files for each comparison, hundreds after a day."""
    worker = process.Worker()
    registered = interpreter._REGISTERED.format(process="{}", user=os.getuid())
    own, of_another = (Path(registered.format(process)) for process in (worker.process, os.getpid()))
    there = of_another.exists()
    try:
        for each in own, of_another:
            each.touch()
        worker.close()
        assert (own.exists(), of_another.exists()) == (False, True)
    finally:
        own.unlink(missing_ok=True)
        if not there:
            of_another.unlink(missing_ok=True)


def _environment(process: int) -> list[str]:
    """Its variables. Linux shows none for a moment while a program is being started."""
    variables, deadline = "", time.monotonic() + LONGEST
    while not variables and time.monotonic() < deadline:
        variables = Path(f"/proc/{process}/environ").read_text(encoding="utf-8")
    return variables.split("\0")
