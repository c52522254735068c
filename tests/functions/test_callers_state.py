"""What a caller has set for itself changes no answer and no comparison, and stays as it was."""

from __future__ import annotations

import json

import pytest
from commands import run_python

BACKENDS = ("python", "numpy", "cpp", "openmp", "avx", "stdpar", "mkl", "onednn")
"""Those that compute in the caller's process, and compile nothing there."""
PREPARE = """
import signal
import warnings
np.seterr(all="raise")
warnings.simplefilter("error")
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
"""
CALLS = """
q, k, v = (rng.standard_normal((65, 64)).astype("f4") for rng in map(np.random.default_rng, range(3)))
k[:, 0], q[0, 0], q[1, 0] = np.inf, -1.0, np.nan  # a query whose scores are all at -infinity, and one of NaN
a = np.full(9, 3e38, "f4")
answers = {}
for backend in sys.argv[1:]:
    try:
        found = [*([] if backend == "onednn" else [pb.vecadd(a, a, backend=backend)]),
                 *([] if backend == "stdpar" else [pb.attention(q, k, v, backend=backend)])]
        answers[backend] = [each.tobytes().hex() for each in found]
    except pb.BackendUnavailable as unavailable:
        answers[backend] = unavailable.reason
report = pb.compare(kernels=["vecadd"], backends=["numpy"], dtypes=["float16"], shapes={"vecadd": [(999,)]}, budget=0.1)
answers["compare"] = [row.status for row in report.rows]
print(json.dumps(answers))
"""
STATE = """
print(np.geterr(), ("error", None, Warning, None, 0) in warnings.filters, signal.getsignal(signal.SIGCHLD).name)
"""
BEGIN = "import json, sys\nimport numpy as np\nimport py_backends as pb\n"


@pytest.mark.stamped
def test_errors_of_numpy_warnings_and_ignored_children_change_nothing() -> None:
    plain = run_python("-c", BEGIN + CALLS, *BACKENDS)
    prepared = run_python("-c", f"{BEGIN}{PREPARE}{STATE}{CALLS}{STATE}", *BACKENDS)
    assert (plain.returncode, prepared.stderr) == (0, "")
    before, answers, after = prepared.stdout.splitlines()
    assert json.loads(answers) == json.loads(plain.stdout)
    assert after == before
