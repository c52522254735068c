"""The Python functions in processes that fork, or that run short of memory: each in a process of its own."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from commands import run_python
from conftest import at_hand

from py_backends import registry

pytestmark = pytest.mark.slow


def marked(*names: str) -> list[Any]:
    """Backends, each with its marker."""
    return [pytest.param(name, marks=getattr(pytest.mark, name)) for name in names]


WITH_A_WORKSPACE = marked("avx", "cpp", "openmp")
FORKABLE = [*WITH_A_WORKSPACE, *marked("mkl", "mpi", "numpy", "processes", "python", "stdpar", "threads")]
"""Those that docs/reference.md promises to a forked child."""
UNWARNED = "-W", "ignore::DeprecationWarning"
"""Newer Pythons warn of forks beside threads."""

FORK = """
    import os, signal, sys
    import numpy as np
    import py_backends as pb

    n = 20 if sys.argv[1] == "python" else 300
    a = np.ones((n, n), np.float32)
    pb.matmul(a, a, backend=sys.argv[1], threads=2)  # its threads are there when the process forks
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that waits for threads it has not
        os._exit(0 if (pb.matmul(a, a, backend=sys.argv[-1], threads=2) == n).all() else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print((pb.matmul(a, a, backend=sys.argv[1], threads=2) == n).all())
"""

FORK_OF_THREADS = """
    import os, signal, sys
    import numpy as np
    import py_backends as pb

    a = np.ones((300, 300), np.float32)
    pb.matmul(a, a, backend=sys.argv[1], threads=2)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that waits for threads it has not
        for threads in 2, 1:  # a device that is there, and one that is opened here
            try:
                pb.matmul(a, a, backend=sys.argv[1], threads=threads)
            except pb.BackendUnavailable as error:
                print(error, flush=True)
        os._exit(0)
    done = os.waitpid(child, 0)[1] == 0
    print(done, (pb.matmul(a, a, backend=sys.argv[1], threads=2) == 300).all())
"""

FORK_IN_A_FIRST_CALL = """
    import os, signal
    from threading import Event, Thread
    import numpy as np
    import py_backends as pb
    from py_backends.functions import call as calls

    def open_a_device():
        with calls._lock:
            held.set()
            over.wait()

    a, held, over = np.ones(3, np.float32), Event(), Event()
    Thread(target=open_a_device).start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that waits for a thread it has not
        os._exit(0 if (pb.vecadd(a, a, backend="numpy") == 2).all() else 1)
    over.set()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

FORK_IN_A_LIMITED_CALL = """
    import os, signal
    from threading import Event, Thread
    import numpy as np
    import py_backends as pb
    from py_backends.backend._blas import LIMIT

    def compute_on_three_threads():
        with LIMIT.at(3):
            begun.set()
            over.wait()

    a, begun, over = np.ones((3, 3), np.float32), Event(), Event()
    before = LIMIT.without()
    Thread(target=compute_on_three_threads).start()
    begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that waits for a thread it has not
        right = (pb.matmul(a, a, backend="numpy", threads=1) == 3).all()
        os._exit(0 if right and LIMIT.without() == before else 1)
    over.set()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

MEMORY = """
    import resource, sys
    import numpy as np
    import py_backends as pb

    small, large = np.ones((200, 200), np.float32), np.ones((3000, 3000), np.float32)
    c = np.empty_like(large)
    pb.matmul(small, small, backend=sys.argv[1], threads=2)  # the threads are made while there is room
    taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken, resource.RLIM_INFINITY))
    try:
        pb.matmul(large, large, backend=sys.argv[1], threads=2, out=c)
    except MemoryError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print((pb.matmul(large, large, backend=sys.argv[1], threads=2, out=c) == 3000).all())
"""

IN_ANY_ORDER = """
    import random, sys
    import numpy as np, py_backends as pb
    from py_backends import registry
    names = registry.backend_names()
    random.Random(int(sys.argv[1])).shuffle(names)
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    computed = set()
    for name in [*names, *reversed(names)]:
        try:
            assert np.array_equal(pb.matmul(a, a.T, backend=name), a @ a.T), name
            computed.add(name)
        except pb.BackendUnavailable:
            continue
    print(*sorted(computed))
"""


@pytest.mark.openmp
@pytest.mark.parametrize("used", marked("mkl", "numba_cpu"))
def test_a_forked_child_computes_by_another_backend_of_the_same_threads(used: str) -> None:
    """The threads that the parent's backend used are those of OpenMP, for which the child would wait."""
    run = run_python(*UNWARNED, "-c", textwrap.dedent(FORK), used, "openmp")
    assert (run.stdout.split(), run.stderr) == (["0", "True"], "")


@pytest.mark.parametrize("backend", marked("numba_cpu", "onednn", "opencl", "sycl"))
def test_a_forked_child_is_told_what_it_cannot_use(backend: str) -> None:
    """Its call would wait for threads that are not there, or end the process."""
    run = run_python(*UNWARNED, "-c", textwrap.dedent(FORK_OF_THREADS), backend)
    why = f"{backend} was used before this process was forked, and its threads or its driver stayed in the parent"
    fix = 'start such a process by multiprocessing.get_context("spawn")'
    assert (run.stdout.splitlines(), run.stderr) == ([f"{why}; {fix}"] * 2 + ["True True"], "")


@pytest.mark.parametrize("backend", FORKABLE)
def test_a_forked_child_computes_as_its_parent_does(backend: str) -> None:
    run = run_python(*UNWARNED, "-c", textwrap.dedent(FORK), backend)
    assert (run.stdout.split(), run.stderr) == (["0", "True"], "")


def test_a_child_that_is_forked_within_a_first_call_computes() -> None:
    run = run_python(*UNWARNED, "-c", textwrap.dedent(FORK_IN_A_FIRST_CALL))
    assert (run.stdout.split(), run.stderr) == (["0"], "")


def test_a_child_that_is_forked_within_a_limited_call_of_numpy_computes() -> None:
    """Its parent's number of BLAS threads is not its own, and nobody is there who would give it back."""
    run = run_python(*UNWARNED, "-c", textwrap.dedent(FORK_IN_A_LIMITED_CALL))
    assert (run.stdout.split(), run.stderr) == (["0"], "")


@pytest.mark.parametrize("backend", WITH_A_WORKSPACE)
def test_a_kernel_without_memory_raises_and_works_again_when_there_is_some(backend: str) -> None:
    run = run_python("-c", textwrap.dedent(MEMORY), backend)
    said = "no memory for the workspace of kernels/matmul/tuned"
    assert (run.stdout.splitlines(), run.stderr) == ([said, "True"], "")


@pytest.mark.parametrize("seed", range(10))
def test_all_backends_compute_in_one_process_in_any_order(seed: int) -> None:
    """Their libraries bring thread pools, compilers and runtimes, some of them the same in other versions."""
    run = run_python("-c", textwrap.dedent(IN_ANY_ORDER), str(seed))
    assert run.returncode == 0, run.stderr
    there = {name for name, target in at_hand() if target.available and not target.emulated}
    assert set(run.stdout.split()) == {name for name in there if registry.kernel_texts("matmul", name)}
