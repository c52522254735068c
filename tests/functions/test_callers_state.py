"""What a caller has set for itself changes no answer and no comparison, and stays as it was."""

from __future__ import annotations

import json

import pytest
from commands import run_python

BACKENDS = ("python", "numpy", "cpp", "openmp", "avx", "stdpar", "mkl", "onednn")
"""Those that compute in the caller's process, and compile nothing there."""
FLUSHED = """
import ctypes, platform
OF_C, AT, FLUSHING = ctypes.CDLL(None), *{"x86_64": (7, 0x8040), "aarch64": (0, 1 << 24)}[platform.machine()]
def mode():  # an fenv_t of glibc: its word for the mode of the units that compute floating-point numbers
    found = (ctypes.c_uint32 * 64)()
    OF_C.fegetenv(found)
    return found
def flush():
    changed = mode()
    changed[AT] |= FLUSHING
    OF_C.fesetenv(changed)
    assert 2.0**-1074 * 1.0 == 0.0
"""
"""`flush` does what loading a library does that was built with -ffast-math."""
PREPARE = """
import signal
import warnings
np.seterr(all="raise")
warnings.simplefilter("error")
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
flush()
"""
CALLS = """
q, k, v = (rng.standard_normal((65, 64)).astype("f4") for rng in map(np.random.default_rng, range(3)))
k[:, 0], q[0, 0], q[1, 0] = np.inf, -1.0, np.nan  # a query whose scores are all at -infinity, and one of NaN
a = np.full(9, 3e38, "f4")
least = np.arange(50_021, dtype="u4").view("f4")  # subnormal numbers
answers = {}
for backend in sys.argv[1:]:
    try:
        found = [*([] if backend == "onednn" else [pb.vecadd(each, each, backend=backend) for each in (a, least)]),
                 *([] if backend == "stdpar" else [pb.attention(q, k, v, backend=backend)])]
        answers[backend] = [hashlib.sha256(each).hexdigest() for each in found]
    except pb.BackendUnavailable as unavailable:
        answers[backend] = unavailable.reason
report = pb.compare(kernels=["vecadd"], backends=["numpy"], dtypes=["float16"], shapes={"vecadd": [(999,)]}, budget=0.1)
answers["compare"] = [row.status for row in report.rows]
print(json.dumps(answers))
"""
STATE = """
print(np.geterr(), ("error", None, Warning, None, 0) in warnings.filters, signal.getsignal(signal.SIGCHLD).name,
      mode()[AT] & FLUSHING)
"""
BEGIN = "import hashlib, json, sys\nimport numpy as np\nimport py_backends as pb\n"


@pytest.mark.stamped
def test_errors_of_numpy_warnings_ignored_children_and_flushed_numbers_change_nothing() -> None:
    plain = run_python("-c", BEGIN + CALLS, *BACKENDS)
    prepared = run_python("-c", f"{BEGIN}{FLUSHED}{PREPARE}{STATE}{CALLS}{STATE}", *BACKENDS)
    assert (plain.returncode, prepared.stderr) == (0, "")
    before, answers, after = prepared.stdout.splitlines()
    assert json.loads(answers) == json.loads(plain.stdout)
    assert after == before


@pytest.mark.openmp
@pytest.mark.stamped
@pytest.mark.parametrize("first", ["pool", "mode", "another's pool"])
def test_a_pool_computes_with_subnormal_numbers_whoever_started_it(first: str) -> None:
    """A thread has the mode of the one that starts it, and all that use OpenMP share the process's threads."""
    start = {"pool": "add()\nflush()", "mode": "flush()", "another's pool": "flush()\nothers()"}[first]
    code = f"""
def add():
    return pb.vecadd(least, least, backend="openmp", variant="lecture", threads=3)
def others():
    openmp = ctypes.CDLL("libgomp.so.1")
    openmp.GOMP_parallel(OF_C.sched_yield, None, 3, 0)
least = np.arange(50_021, dtype="u4").view("f4")
{start}
before = mode()[AT]
print((add().view("u4") == 2 * least.view("u4")).all(), mode()[AT] == before)
"""
    finished = run_python("-c", BEGIN + FLUSHED + code)
    assert (finished.stderr, finished.stdout) == ("", "True True\n")
