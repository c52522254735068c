"""`compare` as a Python function: what it refuses before anything runs, and where it works."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import CLONE, run_python
from rich.console import Console

import py_backends as pb
from py_backends.commands.compare.table import print_report
from py_backends.display.files import markdown_text
from py_backends.harness import compare as module_of_compare
from py_backends.harness.compare import DEFAULT_BUDGET, Comparison, checked_settings, run
from py_backends.harness.plan import Plan
from py_backends.harness.request import Request
from py_backends.results.report import Report, Rounds
from py_backends.results.spec import Spec
from py_backends.system import machine
from py_backends.workers import probe, process

QUICK = {"kernels": ["vecadd"], "backends": ["numpy"], "budget": 2}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"backends": "numpy"}, "backends takes a list of names"),
        ({"dtypes": "float32"}, "dtypes takes a list of names, not the string 'float32'"),
        ({"kernels": 3}, "kernels takes a list of names, not 3"),
        ({"kernels": [["vecadd"]]}, r"kernels takes a list of names, not \[\['vecadd'\]\]"),
        ({"shapes": [(3,)]}, r"shapes takes a dict such as {'vecadd': \[\(1000,\)\]}, not \[\(3,\)\]"),
        ({"budget": "1"}, "budget must be a number of seconds above 0, not '1'"),
        ({"budget": None}, "budget must be a number of seconds above 0, not None"),
        ({"budget": 10**400}, "budget must be a number of seconds above 0, not 1000"),
        ({"budget": Fraction(1, 10**400)}, r"budget must be a number of seconds above 0, not Fraction\(1, 1000"),
        ({"threads": 10**5000}, "threads must be from 1 to 4096, not a value of the type int"),
        ({"threads": "x" * 10**5}, r"threads must be a whole number, not 'x{50,120}\.\.\.$"),
        ({"backends": ["x" * 10**5]}, r"unknown backend 'x{50,120}\.\.\.: there are "),
        ({"progress": True}, r"progress must have a method update\(done, total, text\); True has none"),
        ({"backends": ["nunpy"]}, "did you mean 'numpy'"),
        ({"targets": ["gpu"]}, "unknown target 'gpu'"),
        ({"dtypes": ["float8"]}, "unknown dtype 'float8'"),
        ({"dtypes": ["int8"]}, "nothing runs in int8 in numpy: vecadd has float32, float64, float16, bfloat16"),
        ({"shapes": {"matmul": [(3, 4, 5)]}}, "matmul, which is not among the requested kernels"),
        ({"kernels": None, "shapes": {"matmul": (3, 4, 5)}}, "a list of tuples of sizes"),
        ({"shapes": {"vecadd": []}}, "a list of tuples of sizes"),
        ({"shapes": {"vecadd": [(1.5,)]}}, "n of vecadd must be a whole number"),
        ({"shapes": {"vecadd": [(-1,)]}}, "n of vecadd must be from 0"),
        ({"shapes": {"vecadd": [(10**400,)]}}, "n of vecadd must be from 0"),
        ({"kernels": None, "shapes": {"matmul": [(1, 2)]}}, "takes the sizes m x n x k"),
        ({"threads": 0}, "threads must be from 1"),
        ({"threads": 2.0}, "threads must be a whole number"),
        ({"seed": -1}, "seed must be from 0"),
        ({"budget": float("inf")}, "budget must be"),
        ({"budget": float("nan")}, "budget must be"),
    ],
)
def test_wrong_requests_are_refused_in_one_line(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as refusal:
        pb.compare(**{**QUICK, **arguments})
    assert "\n" not in str(refusal.value)


@pytest.fixture(scope="module")
def compared() -> Report:
    """A comparison of one row, which tests may say other things of."""
    return pb.compare(**QUICK, shapes={"vecadd": [(33,)]})


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        (Rounds(40, 40, {}), ""),
        (Rounds(40, 37, {"steal": 1, "others": 2}), "3 of 40 rounds dropped: 1 while the host took CPUs away, 2 while"),
        (Rounds(40, 40, {"others": 38}), "Of 40 rounds too few were undisturbed, so all of them count: 38 while other"),
    ],
)
def test_a_machine_that_others_use_is_said_to_be_so(compared: Report, rounds: Rounds, said: str) -> None:
    assert compared.machine["busy_cpus"] >= 0
    assert compared.machine["state"]["end"]["steal"]["since_begin"] is not None
    text = markdown_text(replace(compared, rounds=rounds))
    assert said in text
    assert ("while" in text) is bool(said)


@pytest.mark.parametrize(
    ("rounds", "warned"),
    [
        (None, False),
        (Rounds(40, 40, {}), False),
        (Rounds(40, 37, {"steal": 3}), False),
        (Rounds(3, 3, {"others": 2}), True),
    ],
)
def test_times_that_are_worse_are_said_to_be_so_below_the_title(rounds: Rounds | None, warned: bool) -> None:
    """Not at the end alone, which may be a hundred lines below."""
    out = io.StringIO()
    report = Report("2026-11-22", "0.1.0", {"cpu": "Made-up"}, {"seed": 1}, rounds=rounds)
    print_report(report, Console(file=out, width=120, no_color=True))
    title, below, *_ = out.getvalue().splitlines()
    assert title.startswith("py-backends 0.1.0")
    assert below.startswith("Disturbed") is warned
    assert " ".join(out.getvalue().split()).count("idle machine") == 2 * warned


def test_names_may_come_from_anything_and_more_than_once() -> None:
    """A generator was used up before the rows were made, and a name given twice ran twice."""
    request = Request((name for name in ("vecadd", "vecadd")), iter(("numpy", "numpy")))
    assert (request.kernels, request.backends) == (("vecadd",), ("numpy",))
    assert request.settings()["kernels"] == ["vecadd"]


@pytest.mark.parametrize("what", ["kernels", "backends", "targets", "variants", "dtypes"])
def test_an_empty_list_of_names_is_refused(what: str) -> None:
    """It stood for all of them, so that a selection that came out empty measured everything."""
    with pytest.raises(ValueError, match=f"^{what} is an empty list: name some, or leave it out for all$"):
        pb.compare(**{**QUICK, what: iter(())})


def test_numbers_of_numpy_are_numbers() -> None:
    report = pb.compare(
        **QUICK, shapes={"vecadd": [(np.int64(33),)]}, threads=np.int64(1), seed=np.int64(5), dtypes=["float64"]
    )
    assert [row.status for row in report.rows] == ["ok"]
    assert '"threads": 1' in report.to_json()


def test_a_worker_that_cannot_be_started_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended the command with a traceback."""

    def none_left() -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    found = probe.probe(["numpy"])
    monkeypatch.setattr(process.Channel, "pair", none_left)
    ((_, target),) = probe.probe(["numpy"])
    assert (target.reason or "").endswith(os.strerror(errno.EMFILE))
    monkeypatch.setattr(probe, "probe", lambda *_: found)
    report = pb.compare(**QUICK, shapes={"vecadd": [(33,)]})
    (row,) = report.rows
    assert (row.status, os.strerror(errno.EMFILE) in (row.reason or "")) == ("error", True)
    assert target.fix == row.fix
    assert "ulimit -n" in str(row.fix)


def test_a_worker_that_does_not_start_leaves_no_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: Any) -> Any:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(process, "_start", none_left)
    process.temporary.folder()  # the first one keeps a file open as long as the process lives
    before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(process.WorkerFailed, match="t start new thread") as failed:
        process.Worker()
    assert failed.value.status == "error"
    assert len([*Path("/proc/self/fd").iterdir()]) == before


@pytest.mark.slow
def test_scipy_is_imported_where_no_signal_interrupts_it() -> None:
    """What is left of an interrupted import is unusable: it lost the results of the whole run."""
    script = textwrap.dedent("""
        import sys, threading
        import py_backends as pb
        class Watch:
            def find_spec(self, name, *_):
                if name.startswith("scipy.") and threading.current_thread() is threading.main_thread():
                    sys.exit(f"{name} is imported by the main thread")
        sys.meta_path.insert(0, Watch())
        request = {"kernels": ["vecadd"], "backends": ["numpy", "python"], "shapes": {"vecadd": [(33,)]}}
        assert "scipy.stats" not in sys.modules
        pb.compare(**request, budget=2)
        assert "scipy.stats" in sys.modules
    """)
    assert run_python("-c", script).stderr == ""


@pytest.mark.slow
def test_works_in_a_script_without_a_main_guard() -> None:
    script = textwrap.dedent("""
        import py_backends as pb
        report = pb.compare(kernels=["vecadd"], backends=["numpy"], shapes={"vecadd": [(33,)]}, budget=2)
        print([row.status for row in report.rows])
    """)
    run = subprocess.run([sys.executable, "-c", script], cwd=CLONE, capture_output=True, text=True, check=True)
    assert run.stdout == "['ok']\n"


@pytest.mark.slow
def test_works_in_a_forked_child_of_a_process_that_used_it() -> None:
    assert pb.compare(**QUICK, shapes={"vecadd": [(33,)]}).exit_code() == 0
    child = os.fork()
    if child == 0:
        os._exit(pb.compare(**QUICK, shapes={"vecadd": [(33,)]}).exit_code())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.slow
@pytest.mark.numpy
def test_a_statement_is_timed_and_checked_in_place_of_the_kernel() -> None:
    """Its arrays are its own, so its result has to find its way back; a wrong one is a mismatch."""
    of_kernel = Spec("vecadd", "numpy", "cpu", "lecture", "float32", (1000,))
    statements = "np.add(a, b, out=c)", "np.subtract(a, b, out=c)", "pb.nothing(a, b)"
    specs = [of_kernel, *(replace(of_kernel, statement=each) for each in statements)]
    report = run(Plan(["numpy"], lambda _: specs, rounds=9), checked_settings(budget=20))
    assert [row.spec.statement for row in report.rows] == [None, *statements]
    assert [row.status for row in report.rows] == ["ok", "ok", "mismatch", "error"]
    kernel, statement, *_ = report.rows
    assert statement.check is not None
    assert statement.check.passed
    assert statement.versus is not None
    in_rounds = zip(kernel.kernel_seconds, statement.kernel_seconds, strict=False)  # one may end before the other
    of_both = [pair for pair in in_rounds if None not in pair]
    assert statement.versus.rounds == len(of_both) <= 9  # a disturbed sample leaves a gap
    assert statement.seconds is not None
    assert (statement.seconds.upload, statement.seconds.kernel) == (0, statement.seconds.end_to_end)


@pytest.mark.slow
@pytest.mark.numba_cpu
@pytest.mark.avx
@pytest.mark.cpp
def test_what_has_to_be_compiled_is_prepared_first() -> None:
    """Others are soon ready, and a run waits for its longest compilation."""

    class Said(list[str]):
        """Empty, and so false, at first."""

        def update(self, done: float, total: float, text: str) -> None:
            self.append(text)

    said = Said()
    names = ["numpy", "cpp", "avx", "numba_cpu"]
    pb.compare(["vecadd"], names, ["cpu", "sse"], shapes={"vecadd": [(9,)]}, budget=1, progress=said)
    prepared = [text.split()[-2] for text in said if text.startswith("preparing ")]
    assert sorted(prepared) == sorted(names)
    begin_together = min(4, machine.cpus())
    assert "numba_cpu" in prepared[:begin_together]


@pytest.mark.slow
@pytest.mark.python
@pytest.mark.parametrize(
    ("shorten", "status", "words"), [(True, "ok", "shortened from"), (False, "skipped", "none may")]
)
def test_no_run_takes_longer_than_its_worker_may(
    shorten: bool, status: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a budget of half an hour Python had a shape for which its worker counted as hung."""
    monkeypatch.setattr(process, "ANSWER_WITHIN", 2.5)
    request = Request(["matmul"], ["python"], shapes={"matmul": [(400, 400, 400)]})
    asked = Plan.of(request, request.specs, shorten=shorten)
    (row,) = run(replace(asked, rounds=1), checked_settings(budget=600)).rows
    assert row.status == status, row.reason
    assert words in f"{row.note} {row.reason}"


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        (10.0, DEFAULT_BUDGET),  # kernels were kept: all the time that is left goes into rounds
        (20.0, DEFAULT_BUDGET),
        (40.0, 40.0 + 0.375 * DEFAULT_BUDGET),  # they were compiled: some time is kept for rounds all the same
    ],
)
def test_rounds_have_what_preparing_leaves(monkeypatch: pytest.MonkeyPatch, begins: float, ends: float) -> None:
    now, deadlines = [0.0], []
    monkeypatch.setattr(module_of_compare, "monotonic", lambda: now[0])
    monkeypatch.setattr(module_of_compare, "run_rounds", lambda _, deadline, *__, **___: deadlines.append(deadline))
    comparison = Comparison(pool=None, threads=1, budget=DEFAULT_BUDGET, order=None, progress=None)  # type: ignore[arg-type]
    now[0] = begins
    comparison._time([], Plan([], lambda _: []))  # type: ignore[arg-type]
    assert deadlines == [ends]
