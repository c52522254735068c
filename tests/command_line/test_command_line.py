"""The command line, from outside: wrong usage, what options choose, pipes and terminals, Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from commands import CLONE, LONGEST, Finished, environment, run_command, run_here, run_in_terminal, run_python
from conftest import found
from started import LAST_STAGE, SOON

from py_backends import registry
from py_backends.commands import names
from py_backends.display import layout
from py_backends.harness.case import Case
from py_backends.results.check import check_output

COMMANDS = sorted(re.findall(r"^### ([a-z]+)$", (CLONE / "docs" / "reference.md").read_text("utf-8"), re.MULTILINE))
"""Those that the reference describes: a section each."""
QUICK = ("--kernel", "vecadd", "--shape", "vecadd=509", "--budget", "1")
COLOURS = "\x1b["


class TestWrongUsage:
    """Exit code 2, one line that says what to do instead, and nothing done."""

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ("--kernel matmull", "'matmul'"),
            ("--kernel vecadd,matmull", "'matmul'"),
            ("--kernel vecadd,,matmul", "single commas"),
            ("--kernel zzzzzz", "there are attention, "),
            ("--backend nunpy", "'numpy'"),
            ("--backend MPI", "'mpi'"),
            ("--backend nosuch", " avx, "),
            ("--backend _sycl", "'sycl'"),
            ("--backend numpy --target cpuu", "'cpu'"),
            ("--variant lectur", "'lecture'"),
            ("--dtype float23", "'float32'"),
            ("--shape vecadd=-1", "n of vecadd must be from 0 to"),
            ("--shape vecadd=1e6", "n of vecadd must be a whole number, not 1000000.0"),
            ("--shape vecadd=many", "from 0 up"),
            ("--shape vecadd=", "from 0 up"),
            ("--shape 1000", "vecadd=1000000"),
            ("--shape matmul=3x4", "M x N x K"),
            ("--shape vecadd=3x4", "dimensions N"),
            ("--shape vecadd=99999999999999", "at most 2^40"),
            (f"--shape vecadd={'9' * 5000}", "at most 2^40"),
            ("--shape vecad=10", "'vecadd'"),
            ("--threads 0", "from 1"),
            ("--threads 1.5", "from 1"),
            ("--threads 999999999", "from 1 to 4096"),
            ("--seed -1", "from 0"),
            ("--seed 99999999999999999999", "from 0 to 9223372036854775807"),
            ("--budget 0", "above 0"),
            ("--budget -3", "above 0"),
            ("--budget nan", "above 0"),
            ("--budget inf", "above 0"),
            ("--kernel", "one argument"),
            ("--kernels vecadd", ": --kernels vecadd"),
            ("vecadd", ": vecadd"),
        ],
        ids=lambda text: text[:40],
    )
    def test_of_compare(self, tmp_path: Path, options: str, words: str) -> None:
        results = tmp_path / "results.json"
        results.write_text("of an earlier run")
        run = run_here("compare", *options.split(), "--json", results)
        assert_refused(run, "compare", words)
        assert results.read_text() == "of an earlier run"
        assert list(tmp_path.iterdir()) == [results]

    @pytest.mark.parametrize("option", ["--json", "--csv", "--markdown"])
    def test_of_result_files(self, tmp_path: Path, option: str) -> None:
        refused = {
            tmp_path: "is a folder: name a file",
            tmp_path / "missing" / "results": "there is no folder",
            Path("/proc/results"): "/proc cannot be written to",
        }
        for path, words in refused.items():
            assert_refused(run_here("compare", option, path), "compare", words)
        assert list(tmp_path.iterdir()) == []

    def test_of_one_file_for_two_forms(self, tmp_path: Path) -> None:
        path = tmp_path / "results"
        assert_refused(run_here("compare", "--json", path, "--csv", path), "compare", "name one for each")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ("show matmull", "'matmul'"),
            ("show matmul --backend nunpy", "'numpy'"),
            ("show matmul --variant lectur", "'lecture'"),
            ("show", "KERNEL"),
            ("show matmul --backend cpp --diff", "--diff takes two sources, not 1: name two backends"),
            ("show matmul --diff", "--diff takes two sources, not "),
            ("hello opnecl", "'opencl'"),
            ("hello", "MODEL"),
            ("doctor --json /proc/doctor.json", "/proc cannot be written to"),
            ("doctor opencl", ": opencl"),
        ],
    )
    def test_of_other_commands(self, arguments: str, words: str) -> None:
        command = arguments.split(maxsplit=1)[0]
        assert_refused(run_here(*arguments.split()), command, words)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["compar"], "'compare'"),
            ([], f"name a command: {', '.join(names())}"),
        ],
    )
    def test_of_the_whole(self, arguments: list[str], words: str) -> None:
        assert_refused(run_here(*arguments), None, words)


def assert_refused(run: Finished, command: str | None, words: str) -> None:
    program = f"py-backends {command}" if command else "py-backends"
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"{program}: error: ")
    assert line.endswith(f" (try {program} --help)")
    assert words in line


class TestHelp:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_has_an_example_that_the_command_takes(self, command: str) -> None:
        run = run_here(command, "--help")
        assert (run.returncode, run.stderr) == (0, "")
        example = re.search(rf"example: py-backends ({command} .+)", " ".join(run.stdout.split()))
        assert example
        shown = run_here(*example[1].split(), "--no-such-option")
        assert_refused(shown, command, "unknown arguments: --no-such-option")

    def test_of_the_whole_lists_every_command(self) -> None:
        run = run_here("--help")
        assert run.returncode == 0
        assert "example: " in run.stdout
        listed = re.findall(r"^ {4}(\w+)", run.stdout, re.MULTILINE)
        assert sorted(listed) == COMMANDS


@pytest.fixture(scope="module")
def doctor(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, Any]:
    path = tmp_path_factory.mktemp("doctor") / "doctor.json"
    run = run_command("doctor", "--json", path)
    assert (run.returncode, run.stderr) == (0, "")
    return run, json.loads(path.read_text())


class TestDoctor:
    def test_names_every_backend_and_target(self, doctor: tuple[Finished, Any]) -> None:
        run, result = doctor
        targets = [(entry["backend"], entry["target"]) for entry in result["backends"]]
        assert targets == [(name, target.name) for name, target in found()]
        assert {backend for backend, _ in targets} == set(registry.backend_names())
        _, table, *_ = run.stdout.split("\n\n")
        assert set(targets) <= {tuple(line.split()[:2]) for line in table.splitlines()}

    def test_begins_with_the_processor(self, doctor: tuple[Finished, Any]) -> None:
        """As the results name it, whose machine is in the JSON."""
        run, result = doctor
        head, _, _ = run.stdout.partition("\n\n")
        machine = result["machine"]
        assert layout.processor(machine) in head
        assert re.findall(r"\b(L\d) [\d.]+ [KM]iB", head) == list(machine["cache_bytes"])

    def test_says_what_is_missing_and_what_would_bring_it(self, doctor: tuple[Finished, Any]) -> None:
        run, result = doctor
        printed = "".join(run.stdout.split())
        for entry in result["backends"]:
            assert not (entry["available"] and entry["emulated"])
            if not entry["available"]:
                assert entry["reason"]
                assert "".join(entry["reason"].split()) in printed
                assert "".join((entry["fix"] or "").split()) in printed

    def test_in_a_pipe_is_plain(self, doctor: tuple[Finished, Any]) -> None:
        assert COLOURS not in doctor[0].stdout
        assert not [line for line in doctor[0].stdout.splitlines() if line != line.rstrip()]


class TestShow:
    def test_in_a_pipe_prints_the_texts_as_they_are(self) -> None:
        run = run_here("show", "matmul", "--backend", "openmp,cuda", "--variant", "lecture")
        assert (run.returncode, run.stderr) == (0, "")
        expected = [
            f"==> {name}  kernels/{path}  {len(text.splitlines())} lines <==\n{text}"
            for name, path in (("openmp", "matmul/lecture/openmp.cpp"), ("cuda", "matmul/lecture/cuda.cu"))
            for text in [(CLONE / "kernels" / path).read_text()]
        ]
        assert run.stdout == "\n".join(expected)

    def test_a_single_one_in_a_pipe_is_the_source_alone(self) -> None:
        run = run_here("show", "matmul", "--backend", "openmp", "--variant", "tuned")
        assert run.stdout == (CLONE / "kernels/matmul/tuned/openmp.cpp").read_text(encoding="utf-8")

    def test_on_a_terminal_it_names_the_files_that_a_source_includes(self) -> None:
        _, shown = run_in_terminal("show", "matmul", "--backend", "openmp", "--variant", "tuned", columns=120)
        plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
        assert plain.splitlines()[-1].rstrip().endswith(" kernels/matmul/tuned/blocked.hpp")

    def test_without_options_has_every_backend_with_a_text(self) -> None:
        run = run_here("show", "vecadd")
        shown = re.findall(r"^==> (\w+) ", run.stdout, re.MULTILINE)
        assert shown == [name for name in registry.backend_names() if registry.kernel_texts("vecadd", name)]

    def test_a_kernel_that_no_named_backend_has_is_said(self) -> None:
        run = run_here("show", "heat", "--backend", "mkl,onednn")
        assert run.returncode == 2
        assert "heat has no source for mkl or onednn: leave out --backend" in run.stderr

    def test_on_a_terminal_they_stand_side_by_side(self) -> None:
        arguments = ("show", "vecadd", "--backend", "openmp,cpp", "--variant", "lecture")
        code, wide = run_in_terminal(*arguments, columns=200)
        assert code == 0
        assert COLOURS in wide
        plain = re.sub(r"\x1b\[[\d;]*m", "", wide)
        assert re.search(r"openmp +kernels.*cpp +kernels", plain.splitlines()[0])
        first_lines = [line for line in plain.splitlines() if "vecadd: c[i] = a[i] + b[i]" in line]
        assert [line.count("vecadd: c[i] = a[i] + b[i]") for line in first_lines] == [2]
        assert all(len(line) <= 200 for line in plain.splitlines())

    @pytest.mark.parametrize("backends", ["openmp,cuda", "numba_cpu,numba_cuda", "opencl,sycl"])
    @pytest.mark.parametrize("kernel", ["matmul"])
    def test_two_of_any_model_stand_side_by_side_from_120_columns_on(self, kernel: str, backends: str) -> None:
        code, shown = run_in_terminal("show", kernel, "--backend", backends, "--variant", "lecture,tuned", columns=120)
        plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
        assert code == 0
        one, other = backends.split(",")
        titles = re.findall(r"^╭─ (\w+)  .*─╮╭─ (\w+)  .*─╮ *$", plain, re.MULTILINE)
        assert titles == [(one, one), (other, other)], "lecture beside tuned of one, then of the other"
        assert all(len(line) <= 120 for line in plain.splitlines())

    def test_a_line_that_is_too_long_goes_on_below_itself_and_loses_nothing(self) -> None:
        _, shown = run_in_terminal("show", "matmul", "--backend", "openmp", "--variant", "lecture", columns=60)
        plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
        inside = [line[2:-2].rstrip() for line in plain.splitlines() if line.startswith("│")]
        text = (CLONE / "kernels/matmul/lecture/openmp.cpp").read_text(encoding="utf-8")
        assert "".join("".join(inside).split()) == "".join(text.split())
        beginnings = [line for line in inside if line in text]
        assert "#pragma omp parallel for" in beginnings
        signature = next(at for at, line in enumerate(inside) if line.startswith("static void"))
        assert re.match(r"    \S", inside[signature + 1]), "the rest of the signature, 4 columns to the right"
        assert re.match(r"   \S", inside[1]), "the rest of a comment, below its words"

    def test_the_difference_of_two_backends_in_a_pipe_is_plain(self) -> None:
        run = run_here("show", "matmul", "--backend", "cpp,openmp", "--variant", "lecture", "--diff")
        assert (run.returncode, run.stderr) == (0, "")
        lines = run.stdout.splitlines()
        assert lines[:2] == ["--- kernels/matmul/lecture/cpp.cpp", "+++ kernels/matmul/lecture/openmp.cpp"]
        changed = [line for line in lines[2:] if line.startswith(("+", "-")) and not line[1:].startswith("//")]
        assert changed == ["+#pragma omp parallel for"], "the directive, and nothing else of the code"

    def test_the_difference_of_two_backends_on_a_terminal_has_colours(self) -> None:
        code, shown = run_in_terminal("show", "matmul", "--backend", "cpp,numpy", "--diff", columns=120)
        plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
        assert (code, COLOURS in shown) == (0, True)
        assert plain.startswith("--- kernels/matmul/lecture/cpp.cpp"), "numpy has no other variant than lecture"

    def test_on_a_narrow_terminal_they_stand_below_one_another(self) -> None:
        code, narrow = run_in_terminal("show", "vecadd", "--backend", "openmp,cpp", columns=90)
        plain = re.sub(r"\x1b\[[\d;]*m", "", narrow)
        assert code == 0
        assert not re.search(r"openmp +kernels.*cpp +kernels", plain)
        assert re.search(r"cpp +kernels", plain)
        assert all(len(line) <= 90 for line in plain.splitlines())


class TestTerminal:
    def test_on_a_terminal_there_is_progress(self) -> None:
        code, printed = run_in_terminal("compare", "--backend", "numpy", *QUICK, columns=100)
        assert code == 0
        assert COLOURS in printed
        assert any(stage in printed for stage in ("looking", "preparing", "round "))
        assert "1 row ran" in printed

    @pytest.mark.parametrize("words", ["show vecadd --backend cpp", "hello openmp --source"])
    def test_a_pipe_gets_plain_text_whatever_asks_for_colours(
        self, words: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As CI sets them: a source must compile."""
        for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            monkeypatch.setenv(name, "1")
        run = run_here(*words.split())
        assert (run.returncode, COLOURS in run.stdout) == (0, False)


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A comparison by almost every option."""
    path = tmp_path_factory.mktemp("options") / "results.json"
    run = run_command(
        *("compare", "--kernel", "vecadd", "--backend", "python, numpy,avx,numpy", "--target", "cpu"),
        *("--dtype", "all", "--variant", "all", "--threads", "1", "--seed", "7", "--budget", "2"),
        *("--shape", "vecadd=17", "--shape", "vecadd=1000", "--shape", "vecadd=17", "--json", path),
    )
    assert run.returncode == 0, run.stderr
    return json.loads(path.read_text())


@pytest.mark.slow
class TestOptions:
    def test_choose_the_rows(self, chosen: Any) -> None:
        rows = [(row["backend"], row["target"], row["dtype"], row["shape"]["n"]) for row in chosen["rows"]]
        expected = [
            (backend, "cpu", dtype, n)
            for n in (17, 1000)
            for dtype in registry.problem("vecadd").dtypes
            for backend in ("python", "numpy")
        ]
        assert sorted(rows) == sorted(expected), "avx has no target cpu, and what is named twice runs once"

    def test_are_on_record(self, chosen: Any) -> None:
        settings = chosen["settings"]
        assert (settings["threads"], settings["seed"], settings["budget_seconds"]) == (1, 7, 2)
        assert settings["command"].startswith("py-backends compare --kernel vecadd --backend 'python, numpy,avx,numpy'")

    def test_one_size_stands_for_all_dimensions(self, tmp_path: Path) -> None:
        rows = rows_of(tmp_path, "--kernel", "matmul", "--backend", "numpy", "--shape", "matmul=24", "--budget", "1")
        assert [row["shape"] for row in rows] == [{"m": 24, "n": 24, "k": 24}]

    def test_a_target_may_be_of_one_backend_alone(self, tmp_path: Path) -> None:
        (backend, target) = next((name, target.name) for name, target in found() if target.name not in ("cpu", "amx"))
        rows = rows_of(tmp_path, *QUICK, "--backend", f"numpy,{backend}", "--target", f"cpu,{target}")
        assert {(row["backend"], row["target"]) for row in rows} == {("numpy", "cpu"), (backend, target)}

    def test_the_seed_decides_on_the_inputs(self, tmp_path: Path) -> None:
        options = ("--backend", "numpy", "--kernel", "matmul", "--shape", "matmul=9x10x11", "--budget", "1")
        (row,) = rows_of(tmp_path, *options, "--seed", "3")
        problem = registry.problem("matmul")
        errors = []
        for seed in (3, 4):
            case = Case(problem, (9, 10, 11), np.dtype(np.float32), seed)
            a, b = (array.reshape(shape) for array, shape in zip(case.inputs, case.shapes[:-1], strict=True))
            errors.append(check_output(a @ b, case.references[0], problem.rule).check.error_over_bound)
            case.close()
        assert row["check"]["error_over_bound"] == errors[0] != errors[1]


@pytest.mark.slow
class TestNothingRan:
    def test_too_large_for_the_memory_is_skipped_with_the_reason(self, tmp_path: Path) -> None:
        (row,) = rows_of(
            tmp_path, "--kernel", "matmul", "--backend", "numpy", "--shape", f"matmul={2**20}x{2**20}x0", code=1
        )
        assert (row["status"], row["check"], row["seconds"], row["rate"]) == ("skipped", None, None, None)
        assert re.search(r" 1048576 x 1048576 x 0 .*[\d.,]+ GB.*[\d.,]+ GB", row["reason"]), "needed, and free"

    def test_a_budget_that_suffices_for_nothing_is_said(self, tmp_path: Path) -> None:
        """One element has no half: asked to shorten it, the harness has to give up, and not to try for ever."""
        options = ("--kernel", "vecadd", "--backend", "numpy", "--shape", "vecadd=1", "--budget", "0.0000001")
        (row,) = rows_of(tmp_path, *options, code=1)
        assert row["status"] == "skipped"
        assert "--budget" in row["fix"]


def rows_of(folder: Path, *options: str, code: int = 0) -> list[Any]:
    """Run compare; its rows, once its exit code is seen to be right."""
    path = folder / "results.json"
    run = run_command("compare", *options, "--json", path)
    assert (run.returncode, run.stderr) == (code, "")
    return list(json.loads(path.read_text())["rows"])


INTERRUPTED_AT = """
import contextlib, json, signal, sys
import psutil
import py_backends.__main__ as command_line
from py_backends.commands import _run

class Interrupting:
    pressed = False

    def update(self, done, total, text):
        if text.startswith(stage) and not self.pressed:
            self.pressed = True
            workers = [child.pid for child in psutil.Process().children(recursive=True)]
            print(json.dumps(workers), file=sys.stderr, flush=True)
            signal.raise_signal(signal.SIGINT)

stage = sys.argv.pop(1)
_run.progress = lambda: contextlib.nullcontext(Interrupting())
sys.exit(command_line.main())
"""
"""Runs the command line, with a progress bar that presses Ctrl-C at a stage of the comparison."""


class TestInterrupted:
    OPTIONS = ("compare", "--backend", "numpy,python", *QUICK[:4], "--budget", "20", "--json")

    @pytest.mark.parametrize(
        "stage",
        ["round 3", *(pytest.param(each, marks=pytest.mark.slow) for each in ("preparing", "checking", LAST_STAGE))],
    )
    def test_what_was_finished_is_written(self, tmp_path: Path, stage: str) -> None:
        path = tmp_path / "results.json"
        soon = SOON if stage == LAST_STAGE else ()
        run = run_python("-c", INTERRUPTED_AT, stage, *self.OPTIONS, path, *soon)
        assert run.returncode == 130
        assert "Interrupted" in run.stdout
        result = json.loads(path.read_text())
        assert result["interrupted"] is True
        assert len(result["rows"]) == 2
        for row in result["rows"]:
            if stage in {"round 3", LAST_STAGE}:
                assert (row["status"], row["check"]["passed"]) == ("ok", True)
                assert row["seconds"]["kernel"]["samples"] >= (2 if stage == "round 3" else 1)
            elif row["status"] == "skipped":
                assert "interrupted" in row["reason"]
        if stage == "preparing":
            assert {row["status"] for row in result["rows"]} == {"skipped"}
        workers = json.loads(run.stderr.splitlines()[0])
        assert workers or stage == "preparing", "which comes before the first of them starts"
        assert not [pid for pid in workers if psutil.pid_exists(pid)]

    @pytest.mark.slow
    def test_no_worker_outlives_a_signal_from_outside(self, tmp_path: Path) -> None:
        path = tmp_path / "results.json"
        command = [sys.executable, "-m", "py_backends", *self.OPTIONS, str(path)]
        with subprocess.Popen(
            command, cwd=CLONE, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            workers = list(workers_of(process))
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=LONGEST)
        assert (process.returncode, errors) == (130, "")
        assert json.loads(path.read_text())["interrupted"] is True
        assert list(tmp_path.iterdir()) == [path]
        _, alive = psutil.wait_procs(workers, timeout=10)
        assert not alive


def workers_of(process: subprocess.Popen[str]) -> Iterator[psutil.Process]:
    """Its workers, as soon as there are any."""
    while process.poll() is None:
        children = psutil.Process(process.pid).children(recursive=True)
        workers = [child for child in children if is_worker(child)]
        if workers:
            yield from workers
            return
    raise AssertionError(f"it ended with {process.returncode} before it had a worker")


def is_worker(process: psutil.Process) -> bool:
    try:
        return "py_backends.workers.session" in process.cmdline()
    except psutil.NoSuchProcess:  # it has just ended
        return False
