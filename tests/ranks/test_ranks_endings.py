"""Every way in which ranks can end: it costs one row, or one call, which says which rank it was, and nothing is left.

Kernels that end are those of tests/faults/ranks.py; what is killed is killed from outside.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import started
from commands import CLONE, LONGEST, copy_clone, environment, run_python
from conftest import nightly
from faults import scratch
from faults.seen import ENDINGS_ON_RANKS

from py_backends import registry
from py_backends.contract import Target
from py_backends.ranks import endings, engine, progress, world
from py_backends.ranks.log import FIRST
from py_backends.system import interpreter, temporary
from py_backends.system.channel import Channel
from py_backends.workers.arena import Arena
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Runner

pytestmark = [pytest.mark.slow, pytest.mark.mpi, pytest.mark.stamped("py_backends/ranks", "py_backends/workers")]

PATIENCE = "10"
"""Seconds in which sound ranks answer, whoever else is at work; after five of them it is told which one hangs."""
ENDS_WITHIN = 10.0
"""Seconds after which nothing is left, on a machine that is busy; undisturbed it is less than two."""
FLOAT32 = np.dtype(np.float32)
TARGET, RANKS = "2x1", 2


class Processes:
    """Those of a run, whoever is their parent by now, and the files that they have in shared memory and elsewhere."""

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex
        self.folder = Path(tempfile.mkdtemp(prefix="ranks-"))  # short: the path of a socket has at most 107 bytes
        self.environment = environment(**{started._MARK: self.mark, "TMPDIR": str(self.folder)})
        self._shared: set[str] = set()
        self._descriptions = _descriptions()

    def all(self) -> list[psutil.Process]:
        return list(started._of_run(self.mark))

    def look(self) -> None:
        """Note what they have mapped, in order to look for it in the end."""
        for process in self.all():
            try:
                mapped = {each.path for each in process.memory_maps()}
            except (psutil.Error, OSError):
                continue
            self._shared |= {path for path in mapped if path.startswith("/dev/shm/")}  # noqa: S108  # MPI's

    def ranks(self) -> list[psutil.Process]:
        """By their ranks."""
        return sorted(self._of("py_backends.ranks.rank"), key=_rank)

    def launcher(self) -> psutil.Process:
        (keeper,) = self._of("py_backends.ranks.keeper")
        (child,) = keeper.children()
        return child

    def worker(self) -> psutil.Process:
        """The one that has ranks."""
        _, found, *_ = self.launcher().parents()
        return found

    def _of(self, module: str) -> list[psutil.Process]:
        return [each for each in self.all() if _command(each).split()[3:4] == [module]]

    def wait_until(self, state: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LONGEST
        while not (reached := state()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert reached  # asked again, it may have passed: ranks are stopped for moments

    def computes(self) -> bool:
        """Whether some rank is in its kernel."""
        return any(map(_some_compute, self.folder.glob("py-backends-*")))

    def is_stopped(self) -> bool:
        ranks = self.ranks()
        return len(ranks) == RANKS and all(_status(rank) == psutil.STATUS_STOPPED for rank in ranks)

    def assert_nothing_is_left(self) -> None:
        deadline = time.monotonic() + ENDS_WITHIN
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert left == []
        assert self._shared, "no rank was ever seen with shared memory, which shows nothing"
        shutil.rmtree(self.folder)

    def _left(self) -> list[str]:
        described = set() if _others_have_ranks(self.mark) else _descriptions() - self._descriptions
        files = [path for path in (*self._shared, *described) if Path(path).exists()]
        processes = [what for each in self.all() if (what := _described(each))]
        # What workers have there, the next comparison removes where this one was killed: see `TestTemporaryFiles`.
        own = [str(path) for path in self.folder.iterdir() if not path.name.startswith(temporary._NAME)]
        return processes + files + own


def _described(process: psutil.Process) -> str:
    """Its number, state and command; nothing if it has just ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return f"{process.pid} {process.status()} {_command(process)}"
    return ""


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _rank(process: psutil.Process) -> int:
    variables = process.environ()
    return int(next(variables[name] for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK") if name in variables))


def _some_compute(folder: Path) -> bool:
    return bool(progress._read(folder).any())


def _status(process: psutil.Process) -> str:
    try:
        return process.status()
    except psutil.Error:
        return ""


def _descriptions() -> set[str]:
    return set(map(str, Path("/tmp").glob("hydra_hwloc_xmlfile_*")))  # noqa: S108  # where MPICH has them


def _others_have_ranks(mark: str) -> bool:
    """Whether descriptions of the machine may be theirs."""
    ours = {each.pid for each in started._of_run(mark)}
    every = psutil.process_iter(["name"])
    return any(each.info["name"] == "hydra_pmi_proxy" and each.pid not in ours for each in every)


CELLS = """
import json, sys
import numpy as np
import py_backends as pb
from py_backends.functions import call as calls
a, b = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
for cell in sys.stdin:
    try:
        said = eval(json.loads(cell))
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    print(json.dumps(said), flush=True)
"""
CALL = f"bool((pb.vecadd(a, b, backend='mpi', target='{TARGET}', variant='lecture') == a + b).all())"
HANGING = CALL.replace("lecture", "last_rank_hangs")


class Notebook(Processes):
    """A process that holds a device, and evaluates what it is given."""

    def __init__(self, clone: Path = CLONE) -> None:
        super().__init__()
        self.process = subprocess.Popen(
            [sys.executable, "-X", "dev", "-c", CELLS],
            cwd=clone,
            env={**self.environment, "PYTHONPATH": str(clone)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def begin(self, cell: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(cell) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def run(self, cell: str) -> Any:
        self.begin(cell)
        return self.answer()

    def end(self) -> str:
        """End in good order; what was written to standard error."""
        _, errors = self.process.communicate(timeout=LONGEST)
        return errors


@pytest.fixture
def notebook(request: pytest.FixtureRequest) -> Iterator[Notebook]:
    made = Notebook(request.getfixturevalue(request.param) if hasattr(request, "param") else CLONE)
    yield made
    made.process.kill()
    made.process.communicate()
    for process in made.all():  # so that a test that fails leaves nothing to the next
        process.kill()
    shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the clone in which each ending is a variant of vecadd."""
    copy = copy_clone(tmp_path_factory.mktemp("clone"), ["avx", "cpp", "mpi", "numpy", "openmp"])
    scratch.on_ranks(copy, [*ENDINGS_ON_RANKS, *HARMLESS, "last_rank_hangs"], "vecadd")
    return copy


OFTEN = {"last_rank_raises", "last_rank_dies_of_sigkill", "first_rank_hangs"}
"""One of each kind; .ci/nightly has the others."""
HARMLESS = ["each_rank_talks", "last_rank_floods"]


@pytest.fixture(scope="module")
def rows(clone: Path, thorough: bool) -> dict[str, Any]:
    """One comparison with all of them on the same device."""
    run, path = Processes(), clone / "results.json"
    variants = ",".join(["lecture", *(ENDINGS_ON_RANKS if thorough else OFTEN), *HARMLESS])
    command = [sys.executable, "-c", started_with_patience(), PATIENCE, "compare", "--kernel", "vecadd"]
    options = ["--shape", "vecadd=509", "--backend", "numpy,mpi", "--target", f"cpu,{TARGET}", "--variant", variants]
    errors = run.folder / "errors"
    with errors.open("wb") as standard_error:
        process = subprocess.Popen(
            [*command, *options, "--budget", "5", "--json", str(path)],
            cwd=clone,
            env=run.environment,
            stdout=subprocess.DEVNULL,
            stderr=standard_error,
        )
    while process.poll() is None:
        run.look()
        time.sleep(0.5)
    assert (errors.read_text(), process.returncode) == ("", 1)
    errors.unlink()
    run.assert_nothing_is_left()
    found = json.loads(path.read_text())["rows"]
    return {
        "numpy" if row["backend"] == "numpy" else row["variant"]: row for row in found if row["status"] != "skipped"
    }


def started_with_patience() -> str:
    return (
        "import sys\n"
        "import py_backends.workers.process as workers\n"
        "from py_backends.__main__ import main\n"
        "workers.ANSWER_WITHIN = float(sys.argv.pop(1))\n"
        "sys.exit(main())\n"
    )


@pytest.mark.parametrize("fault", [fault if fault in OFTEN else nightly(fault) for fault in ENDINGS_ON_RANKS])
def test_the_row_says_which_rank_ended_and_how(rows: dict[str, Any], fault: str) -> None:
    status, words = ENDINGS_ON_RANKS[fault]
    assert rows[fault]["status"] == status, rows[fault]["reason"]
    assert re.search(words, rows[fault]["reason"])
    assert rows[fault]["rate"] is None


@pytest.mark.parametrize("name", ["numpy", "lecture", *HARMLESS])
def test_other_rows_stand(rows: dict[str, Any], name: str) -> None:
    assert (rows[name]["status"], rows[name]["reason"]) == ("ok", None)
    assert rows[name]["seconds"]["kernel"]["samples"] >= 1


# In a notebook


KILLED: dict[str, Callable[[Processes], psutil.Process]] = {
    "first": lambda notebook: notebook.ranks()[0],
    "last": lambda notebook: notebook.ranks()[-1],
    "launcher": Processes.launcher,
}
SAID = {
    "first": r"rank 0 was killed \(out of memory\?\), or exited",
    "last": r"rank 1 was killed \(out of memory\?\), or exited",
    "launcher": "the launcher was ended by signal 9",
    "worker": "the worker was ended by SIGKILL",
}


@pytest.mark.parametrize("killed", KILLED)
@pytest.mark.parametrize("_time", [1, nightly(2), nightly(3)])
def test_a_killed_rank_costs_one_call_and_the_next_has_new_ones(notebook: Notebook, killed: str, _time: int) -> None:
    assert notebook.run(CALL) is True
    notebook.look()
    before = notebook.ranks()
    assert len(before) == RANKS
    KILLED[killed](notebook).kill()
    answers = [notebook.run(CALL)]
    notebook.wait_until(lambda: not any(map(psutil.Process.is_running, before)))
    answers += [notebook.run(CALL) for _ in range(2)]
    told = f"RanksEnded: the ranks (have ended|ended during '.*'): {SAID[killed]}"
    assert all(answer is True or re.fullmatch(told, answer) for answer in answers)
    assert_one_is_lost(killed, [None if answer is True else answer for answer in answers])
    notebook.look()
    after = notebook.ranks()
    assert len(after) == RANKS
    assert not set(before) & set(after)
    assert notebook.end() == ""
    notebook.assert_nothing_is_left()


def assert_one_is_lost(killed: str, failures: list[str | None]) -> None:
    """Of calls or rows after something was killed: the first, and no other.

    Ranks outlive their launcher for a moment: then the second. Those of Open MPI do until the keeper ends them: then
    the second or none.
    """
    lost = [at for at, failure in enumerate(failures) if failure]
    outlived = [[1]] if engine.engine().name.startswith("MPICH") else [[1], []]
    assert lost in ([[0], *outlived] if killed == "launcher" else [[0]]), failures
    for at in lost:
        assert re.search(SAID[killed], failures[at] or "")


LAUNCHES = """
import os, signal, subprocess, sys, time
from pathlib import Path
dies, ends_by = sys.argv[1:]
def start(rank, how, **options):
    return subprocess.Popen([sys.executable, "-c", RANK, os.environ["TMPDIR"], str(rank), how], **options)
RANK = '''
import os, sys, time
from pathlib import Path
from py_backends.ranks import endings
folder, rank, how = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
endings.connect(folder, rank)
(folder / f"ready-{rank}").touch()
while how != "waits" and not (folder / "go").exists():
    time.sleep(0.01)
for each in sorted((int(name) for name in os.listdir("/proc/self/fd")), reverse=True) if how == "slowly" else ():
    try:
        os.close(each)
    except OSError:
        pass
    time.sleep(0.1)
time.sleep(60)
'''
learns, held = os.pipe()
last = start(1, dies, pass_fds=[held])
os.close(held)
first = start(0, "waits")
folder = Path(os.environ["TMPDIR"])
while not all((folder / f"ready-{rank}").exists() for rank in range(2)):
    time.sleep(0.01)
(folder / "go").touch()
if dies == "waits":
    last.kill()
os.read(learns, 1)
first.kill()
if ends_by == "signal":
    os.kill(os.getpid(), signal.SIGKILL)
first.wait()
time.sleep(0.5)
sys.exit(9)  # as MPICH's does where a rank was killed
"""
"""A launcher of two ranks, the last of which dies.

The launcher learns of it by a file that is closed, and then kills the other rank. Of a rank that dies slowly, one file
is closed after the other, in the order in which Linux does it."""


@pytest.mark.parametrize(
    ("dies", "ends_by", "said"),
    [
        ("slowly", "exit", SAID["last"]),
        ("waits", "exit", SAID["last"]),
        ("waits", "signal", SAID["launcher"]),
    ],
)
def test_the_first_to_end_is_named(tmp_path: Path, dies: str, ends_by: str, said: str) -> None:
    """A process that dies lets go of its files, by which others learn of it, before it is dead.

    So the launcher kills the other ranks while the first is still dying. A launcher that is killed does so as well.
    """
    launcher = [sys.executable, "-c", LAUNCHES, dies, ends_by]
    keeper = interpreter.command("py_backends.ranks.keeper", str(os.getpid()), str(tmp_path / "folder"), *launcher)
    run = subprocess.run(
        keeper,
        env=environment(PYTHONPATH=str(CLONE)),
        cwd=CLONE,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert re.search(f"^{FIRST}{said}$", run.stderr, re.MULTILINE), run.stderr


DIES = """
import os, socket, sys, time
from pathlib import Path
from py_backends.ranks import endings
low = socket.socket(fileno=int(sys.argv[2]))
endings.connect(Path(sys.argv[1]), 3)
low.send(b".")
time.sleep(60)
"""


@pytest.mark.parametrize("_time", range(3))
def test_linux_closes_the_connection_to_the_keeper_first(tmp_path: Path, _time: int) -> None:
    """Before what the process had opened, or was left, by a lower descriptor. By this the keeper hears first."""
    ours, low = socket.socketpair()
    with endings.listen(tmp_path) as listener, ours, select.epoll() as poll:
        dies = [sys.executable, "-c", DIES, str(tmp_path), str(low.fileno())]
        process = subprocess.Popen(dies, cwd=CLONE, pass_fds=[low.fileno()])
        low.close()
        connection, number, rank = endings.accept(listener)
        endings.confirm(connection)
        assert ours.recv(1) == b"."
        assert (number, rank) == (process.pid, 3)
        with connection:
            for end in (ours, connection):
                poll.register(end, select.EPOLLIN)
            assert poll.poll(0) == []
            process.kill()
            process.wait()
            assert [descriptor for descriptor, _ in poll.poll(LONGEST)] == [connection.fileno(), ours.fileno()]


@pytest.mark.parametrize("notebook", ["clone"], indirect=True)
def test_an_interrupted_call_leaves_no_answer_to_the_next(notebook: Notebook) -> None:
    """Neither where it ends by itself nor where it has to be ended."""
    assert notebook.run(CALL) is True
    for _ in range(5):
        notebook.begin(f"[{CALL} for _ in range(100000)]")
        time.sleep(0.2)
        notebook.process.send_signal(signal.SIGINT)
        assert notebook.answer() == "KeyboardInterrupt: "
        assert notebook.run(CALL) is True
    notebook.look()
    before = notebook.ranks()
    notebook.begin(HANGING)
    time.sleep(0.5)
    notebook.process.send_signal(signal.SIGINT)
    assert notebook.answer() == "KeyboardInterrupt: "
    assert not any(process.is_running() for process in before)
    assert notebook.run(CALL) is True
    assert notebook.end() == ""
    notebook.assert_nothing_is_left()


def test_an_interruption_while_ranks_start_leaves_nothing(notebook: Notebook) -> None:
    """They share memory from then on, when their keeper had looked for the last time."""
    notebook.begin(CALL)
    notebook.wait_until(lambda: bool(notebook.ranks()))
    notebook.process.send_signal(signal.SIGINT)
    while notebook.ranks():
        notebook.look()
    assert notebook.answer().startswith("KeyboardInterrupt")
    assert notebook.end() == ""
    notebook.assert_nothing_is_left()


@pytest.mark.parametrize("notebook", ["clone"], indirect=True)
@pytest.mark.parametrize("_time", [1, nightly(2), nightly(3)])
@pytest.mark.parametrize("busy", [False, True])
def test_ranks_end_with_a_notebook_that_is_killed(notebook: Notebook, busy: bool, _time: int) -> None:
    assert notebook.run(CALL) is True
    notebook.look()
    if busy:
        notebook.begin(HANGING)
        time.sleep(0.3)
    notebook.process.kill()
    notebook.assert_nothing_is_left()


LEAVES = """
import threading, time
import numpy as np
import py_backends as pb
from py_backends.functions import call as calls
a = np.ones((300, 300), np.float32)
def work():
    while True:
        pb.matmul(a, a, backend="mpi", target="1x1")
        done.set()
done = threading.Event()
threading.Thread(target=work, daemon=True).start()
done.wait()
"""


def test_a_daemon_thread_within_a_call_ends_without_a_word() -> None:
    """The channel was closed while it waited: it wrote a traceback."""
    for _ in range(3):
        run = run_python("-c", LEAVES)
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


class NoStream:
    def write(self, _: str) -> None:
        raise BrokenPipeError


@pytest.mark.parametrize("stream", [None, NoStream()])
def test_a_remark_that_cannot_be_written_costs_no_call(monkeypatch: pytest.MonkeyPatch, stream: Any) -> None:
    for name in ("_SOON", "_QUIET"):
        monkeypatch.setattr(world, name, 0.01)
    monkeypatch.setattr(world, "who_computes", lambda _folder: [1])
    made = world.World(1, 1)
    monkeypatch.setattr(sys, "stderr", stream)
    ours, theirs = Channel.pair()
    made._wait_for_answer(ours)
    made.close()
    for end in (ours, theirs):
        end.close()


# In a comparison


@pytest.mark.parametrize("busy", [True, nightly(False)])
@pytest.mark.parametrize("_time", [1, nightly(2), nightly(3)])
def test_ranks_end_with_a_harness_that_is_killed(clone: Path, busy: bool, _time: int) -> None:
    run = Processes()
    variant = "last_rank_hangs" if busy else "lecture"
    options = ["--kernel", "vecadd", "--shape", "vecadd=509", "--backend", "mpi", "--target", TARGET]
    process = subprocess.Popen(
        [sys.executable, "-m", "py_backends", "compare", *options, "--variant", variant, "--budget", "60"],
        cwd=clone,
        env=run.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    run.wait_until(run.computes if busy else run.is_stopped)
    run.look()
    process.kill()
    process.wait()
    run.assert_nothing_is_left()


@pytest.mark.parametrize(
    ("killed", "busy"),
    [
        ("worker", True),
        ("launcher", False),
        ("first", False),
        ("last", True),
        nightly("worker", False),
        nightly("launcher", True),
        nightly("first", True),
        nightly("last", False),
    ],
)
@pytest.mark.parametrize("_time", [1, nightly(2), nightly(3)])
def test_what_is_killed_costs_one_row(monkeypatch: pytest.MonkeyPatch, killed: str, busy: bool, _time: int) -> None:
    """Busy: in a kernel. Idle: between turns, when all of them are stopped."""
    run = Processes()
    for name in (started._MARK, "TMPDIR"):
        monkeypatch.setenv(name, run.environment[name])
    text = registry.kernel_texts("matmul", "mpi")["tuned"]
    size = 6000 if busy else 33
    small, large = (Arena([4 * n * n + 2**20] * 3) for n in (33, size))
    for arena, n in ((small, 33), (large, size)):
        arena.place((n, n, n), FLOAT32, [(n, n)] * 3, [0] * 3)
    runner = Runner("mpi", Target(TARGET), RANKS)
    with ThreadPoolExecutor(1) as pool:
        runner.prepare(text, small)
        run.wait_until(run.is_stopped)
        run.look()
        begun = pool.submit(runner.run, text, large) if busy else None
        if busy:
            run.wait_until(run.computes)
        victims = {"worker": run.worker, "launcher": run.launcher}
        victims |= {"first": lambda: run.ranks()[0], "last": lambda: run.ranks()[-1]}
        before = run.ranks()
        victims[killed]().kill()
        failures = [_failure(begun.result if begun else lambda: runner.run(text, small))]
        run.wait_until(lambda: not any(map(psutil.Process.is_running, before)))
        failures += [_failure(lambda: runner.run(text, small)) for _ in range(2)]
    assert_one_is_lost(killed, failures)
    run.look()
    runner.close()
    for arena in (small, large):
        arena.close()
    run.assert_nothing_is_left()


def _failure(row: Callable[[], Any]) -> str | None:
    try:
        row()
    except WorkerFailed as failed:
        return str(failed)
    return None


LATE = """
import mmap, os, pathlib, sys, time
from py_backends.ranks import endings
endings.connect(pathlib.Path(os.environ["TMPDIR"]), 0)
time.sleep(0.4)
mapped = []
for path in sys.argv[1:]:
    pathlib.Path(path).parent.mkdir(exist_ok=True)
    with open(path, "a+b") as file:
        file.truncate(4096)
        mapped.append(mmap.mmap(file.fileno(), 4096))
time.sleep(1)
"""
"""A rank that maps files some time after it is ready, and leaves them behind."""


def test_what_ranks_share_late_is_removed_too(tmp_path: Path) -> None:
    """The keeper looked once, as soon as they were ready: of ranks that ended at once a file of MPI's was left."""
    with kept(tmp_path, "late") as (late,):
        assert not late.exists()


def test_what_users_have_in_shared_memory_stays(tmp_path: Path) -> None:
    """Ranks map the libraries of an environment that lies there: these were removed."""
    with kept(tmp_path, "there_before", "environment/library.so", before=["there_before"]) as files:
        assert all(file.exists() for file in files)


@contextlib.contextmanager
def kept(tmp_path: Path, *names: str, before: Sequence[str] = ()) -> Iterator[list[Path]]:
    """Files in shared memory that a rank had mapped when it ended, some of them made before it began."""
    mark, folder = f"py-backends-{uuid.uuid4().hex}-", tmp_path / "ranks"
    files = {name: Path("/dev/shm") / f"{mark}{name}" for name in names}  # noqa: S108  # where MPI shares memory
    keep = interpreter.command("py_backends.ranks.keeper", str(os.getpid()), str(folder))
    try:
        for name in before:
            files[name].touch()
        command = [*keep, sys.executable, "-c", LATE, *map(str, files.values())]
        subprocess.run(command, env=environment(PYTHONPATH=str(CLONE)), cwd=CLONE, check=True, timeout=LONGEST)
        assert not folder.exists()
        yield list(files.values())
    finally:
        for path in Path("/dev/shm").glob(f"{mark}*"):  # noqa: S108
            shutil.rmtree(path) if path.is_dir() else path.unlink()
