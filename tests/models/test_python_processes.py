"""The processes of the backend `processes` end with the one that they compute for, and leave nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
import started
from commands import LONGEST, run_python

from py_backends.install import pip_install

pytestmark = [
    pytest.mark.slow,
    pytest.mark.processes,
    pytest.mark.stamped("py_backends/backend/processes.py", "py_backends/backend/_process_host.py"),
]

CALLER = """
    import numpy as np, py_backends as pb
    a = np.arange(1000, dtype=np.float32)
    print((pb.vecadd(a, a, backend="processes", threads=2) == 2 * a).all(), flush=True)
"""
THEN_WAITS = CALLER + "    import time; time.sleep(60)\n"
SHARED = Path("/dev/shm")  # noqa: S108  # where Linux keeps what processes share


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_they_end_with_a_caller(number: signal.Signals) -> None:
    before = set(SHARED.iterdir())
    run = started.Started([sys.executable, "-c", textwrap.dedent(THEN_WAITS)])
    assert run.process.stdout
    assert run.process.stdout.readline() == "True\n"
    assert len(run.workers()) == 3  # one starts the two others
    run.process.send_signal(number)
    run.end().assert_nothing_is_left(had_memory=False)
    assert set(SHARED.iterdir()) <= before


@pytest.mark.parametrize("whom", ["harness", "worker"])
def test_they_end_with_the_harness_and_with_a_worker(whom: str, tmp_path: Path) -> None:
    before = set(SHARED.iterdir())
    run = started.started_until("round", tmp_path / "results.json", "numpy,processes")
    worker = next(process for process in run.workers() if any("_process_host" in word for word in process.cmdline()))
    (run.process if whom == "harness" else psutil.Process(worker.ppid())).kill()
    ended = run.end(None if whom == "harness" else tmp_path / "results.json")
    ended.assert_nothing_is_left(had_memory=False)  # it is looked for now and then
    if whom == "worker":
        assert ended.rows["numpy"]["status"] == "ok"
    assert set(SHARED.iterdir()) <= before


def test_one_that_is_killed_costs_one_call() -> None:
    code = """
        import os, signal, psutil
        {caller}
        host, = psutil.Process().children()
        host.children()[0].kill()
        for _ in range(100):  # the other one may have done all tasks before the first one is missed
            try:
                pb.vecadd(a, a, backend="processes", threads=2)
            except RuntimeError as error:
                print(type(error).__name__)
                break
        print((pb.vecadd(a, a, backend="processes", threads=2) == 2 * a).all())
        psutil.Process().children()[0].kill()
        try:
            pb.vecadd(a, a, backend="processes", threads=2)
        except RuntimeError as error:
            print(error)
        print((pb.vecadd(a, a, backend="processes", threads=2) == 2 * a).all())
    """
    run = run_python("-c", textwrap.dedent(code).format(caller=textwrap.dedent(CALLER)))
    said = ["True", "KernelFault", "True", "the processes have ended during 'launch'", "True"]
    assert run.stdout.splitlines() == said, run.stderr


def test_a_task_gets_rows_of_arrays_and_no_columns(tmp_path: Path) -> None:
    """Columns would be copied, and what is written to them lost."""
    source = tmp_path / "columns" / "processes.py"
    source.parent.mkdir()
    source.write_text(
        textwrap.dedent("""
            # matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
            # Model: one task, which gets columns.
            # Memory: shared.
            # Edges: none.
            def fill(c):
                c[...] = 1


            def matmul(executor, workers, a, b, c, m, n, k):
                list(executor.map(fill, [c[:, : n // 2]]))
        """)
    )
    run = run_python(
        *("-m", "py_backends", "compare", "--kernel", "matmul", "--backend", "processes", "--budget", "5"),
        *("--variant", "columns", "--sources", str(source.parent)),
    )
    assert run.returncode == 1
    assert "a task takes whole arrays, or whole rows of them" in run.stdout


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_callers_own_processes_compute(method: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing\n\n\ndef in_a_child():\n"
        + textwrap.indent(textwrap.dedent(CALLER).strip(), "    ")
        + "\n\n\nif __name__ == '__main__':\n    in_a_child()\n"
        + f"    child = multiprocessing.get_context('{method}').Process(target=in_a_child)\n"
        + "    child.start()\n    child.join()\n    print(child.exitcode)\n"
    )
    run = run_python("-W", "ignore::DeprecationWarning", str(script))
    assert (run.stdout.split(), run.stderr) == (["True", "True", "0"], "")


def test_a_script_without_a_guard_and_standard_input_compute(tmp_path: Path) -> None:
    """Python's own way to start a process would run the script again in each of them."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(CALLER))
    assert run_python(str(script)).stdout == "True\n"
    code = textwrap.dedent(CALLER)
    read = subprocess.run(
        [sys.executable, "-"], input=code, capture_output=True, text=True, timeout=LONGEST, check=True
    )
    assert read.stdout == "True\n"


def test_a_notebook_computes_and_leaves_nothing() -> None:
    """The kernel of a notebook has threads and handlers of its own. Its processes end with it."""
    if find_spec("nbclient") is None:
        pytest.skip(f"nbclient is not installed (to change that: {pip_install('notebook')})")
    import nbformat
    from nbclient import NotebookClient

    told = "import psutil; print([each.pid for each in psutil.Process().children(recursive=True)])"
    cells = [nbformat.v4.new_code_cell(source) for source in (textwrap.dedent(CALLER), textwrap.dedent(CALLER), told)]
    NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=LONGEST).execute()
    said = [cell.outputs[-1].text for cell in cells]
    assert said[:2] == ["True\n", "True\n"]
    processes = json.loads(said[2])
    assert len(processes) >= 3  # one starts the two others
    psutil.wait_procs([psutil.Process(each) for each in processes if psutil.pid_exists(each)], timeout=10)
    assert not [each for each in processes if psutil.pid_exists(each)]


def test_memory_that_is_gone_is_unmapped_everywhere() -> None:
    code = """
        import gc, os, psutil
        {caller}
        for n in range(1, 6):
            a = np.ones(n << 20, np.float32)
            assert (pb.vecadd(a, a, backend="processes", threads=2) == 2).all()
        a = np.ones(10, np.float32)
        pb.vecadd(a, a, backend="processes", threads=2)
        host, = psutil.Process().children()
        for process in host, *host.children():
            mapped = [each for each in process.memory_maps() if "memfd:py-backends" in each.path]
            print(sum(each.size for each in mapped) < 1 << 20)
    """
    run = run_python("-c", textwrap.dedent(code).format(caller=textwrap.dedent(CALLER)))
    assert run.stdout.split() == ["True"] * 4, run.stdout + run.stderr


def test_a_kernel_that_never_ends_does_not_outlive_its_caller(tmp_path: Path) -> None:
    source = tmp_path / "never" / "processes.py"
    source.parent.mkdir()
    source.write_text(
        textwrap.dedent("""
            # vecadd: c[i] = a[i] + b[i] for vectors of n elements.
            # Model: it never ends.
            # Memory: none.
            # Edges: none.
            def vecadd(executor, workers, a, b, c, n):
                while True:
                    pass
        """)
    )
    code = f"""
        from py_backends import folders
        folders.add(folders.sources_at({str(source.parent)!r}, "vecadd"))
        import numpy as np, py_backends as pb
        print(flush=True)
        a = np.ones(10, np.float32)
        pb.vecadd(a, a, backend="processes", variant="never", threads=2)
    """
    run = started.Started([sys.executable, "-c", textwrap.dedent(code)])
    assert run.process.stdout
    run.process.stdout.readline()
    time.sleep(2)
    run.process.kill()
    run.end().assert_nothing_is_left(had_memory=False)
