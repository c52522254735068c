"""The first programs: short and whole, run step by step, right; and where they cannot run the reason and the fix."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import CLONE, environment
from compilers import gcc_or_skip
from conftest import has_device
from page_commands import run, to_run
from rich.console import Console
from test_page_commands import check

from py_backends.__main__ import main
from py_backends.commands.hello import programs
from py_backends.commands.hello import run as hello
from py_backends.commands.hello.programs import Program
from py_backends.commands.hello.run import Outcome
from py_backends.commands.hello.table import print_program

ALL = [program for model in programs.models() for program in programs.programs(model)]
SUMS = "0.5 1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5 9.5"


def marked(model: str) -> Any:
    """A model as a parameter that carries the marker of its backend."""
    return pytest.param(model, marks=getattr(pytest.mark, model))


def named(name: str) -> Program:
    return Program(programs.PLACE / name)


def printed(outcomes: dict[str, Outcome], name: str) -> list[str]:
    """All lines that a program has printed; a skip where what it needs is not there."""
    outcome = outcomes[name]
    if not outcome.ran:
        assert not outcome.failed, f"{name} was run, and failed: {outcome.reason}"
        pytest.skip(f"{name}: {outcome.reason} (to change that: {outcome.fix})")
    return [line for _, lines in sorted(outcome.printed.items()) for line in lines]


class TestSources:
    @pytest.mark.parametrize("program", ALL, ids=lambda program: program.path.name)
    def test_is_short_and_says_what_it_shows(self, program: Program) -> None:
        lines = program.source.splitlines()
        assert len(lines) <= 40
        assert all(len(line) <= 90 for line in lines)
        assert program.source.isascii()
        assert re.fullmatch(r"\w.+\.", program.title)
        assert program.path.suffix == ".py" or (program.said("Build") or "").endswith(f" -o {program.model}")

    @pytest.mark.parametrize("program", ALL, ids=lambda program: program.path.name)
    def test_its_steps_are_numbered_and_have_all_its_code(self, program: Program) -> None:
        steps = program.steps
        assert [step.number for step in steps] == list(range(len(steps)))
        assert len(steps) > 4
        lines = program.source.splitlines()
        for step in steps[1:]:
            assert step.text.endswith(".")
            assert all(len(sentence.split()) <= 30 for sentence in re.split(r"[.:] ", step.text))
        for step in steps:
            assert tuple(lines[step.first - 1 : step.first - 1 + len(step.code)]) == step.code
        code = sum(len([line for line in step.code if line.strip()]) for step in steps)
        comments = sum(bool(re.match(r"\s*(//|#) ", line)) for line in lines)
        assert code + comments == len([line for line in lines if line.strip()])

    @pytest.mark.parametrize("program", ALL, ids=lambda program: program.path.name)
    def test_a_mark_for_a_step_moves_no_line(self, program: Program) -> None:
        ours, theirs = program.marked.splitlines(), program.source.splitlines()
        assert len(ours) == len(theirs)
        assert 0 < sum(our != their for our, their in zip(ours, theirs, strict=True)) <= len(program.steps) - 1

    def test_of_a_model_what_runs_here_comes_first(self) -> None:
        assert [program.path.name for program in programs.programs("sycl")] == ["sycl.py", "sycl.cpp"]


@pytest.mark.slow
class TestResults:
    """What they print is right."""

    def test_openmp(self, outcomes: dict[str, Outcome]) -> None:
        printed(outcomes, "openmp.cpp")
        steps = outcomes["openmp.cpp"].printed
        said = [re.fullmatch(r"iteration (\d): I am thread (\d+)", line) for line in steps[2]]
        runners = {int(line[1]): line[2] for line in said if line}
        assert sorted(runners) == list(range(10)), "every iteration once"
        (line,) = steps[3]
        assert line.split() == [runners[i] for i in range(10)]
        threads = int(steps[1][1].split()[0])
        assert len(set(runners.values())) == min(threads, 10)
        assert steps[4] == ["0 + 1 + ... + 9 = 45"]

    @pytest.mark.stdpar
    def test_stdpar(self, outcomes: dict[str, Outcome]) -> None:
        *_, sums, total, largest = printed(outcomes, "stdpar.cpp")
        assert sums.split() == [str(11 * i) for i in range(10)]
        assert (total, largest) == ("0 + 1 + ... + 9 = 45", "99 is the largest")

    def test_data_race(self, outcomes: dict[str, Outcome]) -> None:
        """No count need be lost: both threads may have one core, one after the other."""
        race, *cured = printed(outcomes, "data_race.cpp")
        found = re.fullmatch(r"a race: (\d+) of 2000000; right or not, another run may lose some", race)
        assert found
        assert 1 <= int(found[1]) <= 2_000_000
        assert cured == [f"with a{what}: 2000000" for what in (" mutex", "n atomic", " sum a thread")]

    @pytest.mark.jax
    def test_jax(self, outcomes: dict[str, Outcome]) -> None:
        printed(outcomes, "jax.py")
        steps = outcomes["jax.py"].printed
        sums, same = steps[5]
        assert sums.removeprefix("c").strip() == SUMS
        assert same.endswith(" True"), "as NumPy adds"
        assert steps[6] == ["c is there: False"]
        assert steps[7] == ["vecadd is written down for (4,)"], "once for both calls"

    @pytest.mark.triton
    def test_triton(self, outcomes: dict[str, Outcome]) -> None:
        *_, programs_of, sums, same = printed(outcomes, "triton.py")
        assert programs_of == "program 0 0 0 0 1 1 1 1 2 2"
        assert sums.removeprefix("c").strip() == SUMS
        assert same.endswith(" True"), "as PyTorch adds"

    def test_avx(self, outcomes: dict[str, Outcome]) -> None:
        a, b, sse, avx, fma, alternating = (line.split() for line in printed(outcomes, "avx.cpp"))
        pairs = [(int(x), int(y)) for x, y in zip(a[1:], b[1:], strict=True)]
        assert len(pairs) == 8
        assert sse == avx == ["a+b", *(str(x + y) for x, y in pairs)]
        assert fma[1:] == [str(x * y + 100) for x, y in pairs]
        assert alternating[1:] == [str(x * y + (5 if lane % 2 else -5)) for lane, (x, y) in enumerate(pairs)]

    @pytest.mark.parametrize("model", [marked(name) for name in ("opencl", "sycl", "cuda", "cutile", "numba_cpu")])
    def test_of_ten_elements(self, outcomes: dict[str, Outcome], model: str) -> None:
        *_, sums, same = printed(outcomes, f"{model}.py")
        assert sums.removeprefix("c").strip() == SUMS
        assert same.endswith(" True"), "as NumPy adds"

    @pytest.mark.opencl
    def test_opencl_names_each_platform_once_with_its_maker(self, outcomes: dict[str, Outcome]) -> None:
        platforms = [line.strip() for line in printed(outcomes, "opencl.py") if ", made by " in line]
        assert platforms == list(dict.fromkeys(platforms)) != []

    @pytest.mark.cuda
    def test_cuda_names_the_block_and_thread_of_each_element(self, outcomes: dict[str, Outcome]) -> None:
        lines = printed(outcomes, "cuda.py")
        assert "grid 3 block 4 threads 12" in lines
        assert "block  0 0 0 0 1 1 1 1 2 2" in lines
        assert "thread 0 1 2 3 0 1 2 3 0 1" in lines

    @pytest.mark.cuda
    def test_cuda_without_a_gpu_says_who_computed(self, outcomes: dict[str, Outcome]) -> None:
        printed(outcomes, "cuda.py")
        reason = outcomes["cuda.py"].reason
        assert (reason is None) == has_device("cuda")
        assert reason is None or "CPU" in reason

    @pytest.mark.mpi
    def test_mpi(self, outcomes: dict[str, Outcome]) -> None:
        printed(outcomes, "mpi.py")
        steps = outcomes["mpi.py"].printed
        ranks = [re.fullmatch(r"I am rank (\d) of 4, process (\d+)", line) for line in steps[1]]
        assert sorted(rank[1] for rank in ranks if rank) == ["0", "1", "2", "3"]
        assert len({rank[2] for rank in ranks if rank}) == 4, "processes of their own"
        assert sorted(steps[2]) == [f"rank {rank}: mine = {10 * (rank + 1)}" for rank in range(4)]
        (received,) = steps[3]
        assert ("rank 3" in received, "hello" in received) == (True, True)
        assert sorted(re.findall(r"\d+", line) for line in steps[4]) == [[str(rank), "100"] for rank in range(4)]

    @pytest.mark.parametrize("name", ["openmp.cpp", "avx.cpp", pytest.param("stdpar.cpp", marks=pytest.mark.stdpar)])
    def test_without_what_marks_steps_they_compile(self, name: str, tmp_path: Path) -> None:
        compiler = gcc_or_skip()
        program = named(name)
        words = (program.said("Build") or "").split()
        shutil.copy(program.path, tmp_path)
        strict = "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-std=c++17"
        found = hello.with_libraries_of_wheels()
        subprocess.run([compiler, *words[1:], *strict], cwd=tmp_path, check=True, timeout=60, env=found)

    @pytest.mark.nightly
    def test_the_slide_s_form_of_sycl_is_right_c_plus_plus(self) -> None:
        """What it does needs a compiler that is not on every machine; its types are those of the runtime's headers."""
        pytest.importorskip("dpctl", reason='dpctl is not installed (to change that: pip install "dpctl")')
        compiler = gcc_or_skip()
        command = [sys.executable, CLONE / "cmake" / "locate_sycl.py"]
        located = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        folders = [f"-isystem{folder}" for folder in located.strip().split(";")[1:]]
        options = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING"]
        subprocess.run([compiler, *options, *folders, named("sycl.cpp").path], check=True, timeout=120)

    @pytest.mark.cuda
    def test_the_kernel_of_cuda_is_cuda_c_plus_plus(self) -> None:
        core = pytest.importorskip(
            "cuda.core", reason='cuda-core is not installed (to change that: pip install "cuda-core")'
        )
        (text,) = re.findall(r'"""(.+?)"""', named("cuda.py").source, re.DOTALL)
        assert core.Program(text, "c++", core.ProgramOptions(arch="sm_80")).compile("cubin").code.startswith(b"\x7fELF")


class TestMissing:
    """The reason and the fix, and exit code 1 where nothing ran."""

    def test_no_compiler(self, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "py_backends", "hello", "openmp"]
        kept = {name: value for name, value in environment().items() if name != "CXX"} | {"PATH": str(tmp_path)}
        run = subprocess.run(command, cwd=CLONE, env=kept, capture_output=True, text=True, timeout=120, check=False)
        assert (run.returncode, run.stderr) == (1, "")
        assert re.search(r"openmp\.cpp +.*compiler", run.stdout)
        assert re.search(r"install .*g\+\+", run.stdout)
        assert re.search(r"^ *4\. ", run.stdout, re.MULTILINE), "its steps can be read all the same"

    @pytest.mark.parametrize(
        ("compiler", "reason"),
        [
            ("no-such-compiler", "CXX=no-such-compiler is not in PATH"),
            ('g++ "', 'CXX=g++ " is no command: no closing quotation'),
            ("false", "`false -O2 -fopenmp openmp.cpp -o openmp` fails: it prints nothing"),
        ],
    )
    def test_a_compiler_that_is_none(self, monkeypatch: pytest.MonkeyPatch, compiler: str, reason: str) -> None:
        monkeypatch.setenv("CXX", compiler)
        outcome = hello.run(named("openmp.cpp"))
        assert (outcome.ran, outcome.failed, outcome.reason) == (False, False, reason)
        assert outcome.fix

    def test_a_compiler_in_this_folder_that_speaks_another_language(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "mine").write_text(
            """#!/bin/sh
case "$LC_ALL$LANGUAGE" in CC) echo "it: error: not this" ;; *) echo "it: 오류: not this" ;; esac >&2
echo "compilation terminated." >&2; exit 1
""",
            encoding="utf-8",
        )
        (tmp_path / "mine").chmod(0o755)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("LC_ALL", "ko_KR.UTF-8")
        monkeypatch.setenv("CXX", "./mine")
        outcome = hello.run(named("openmp.cpp"))
        assert (outcome.reason or "").endswith("fails: it: error: not this")

    @pytest.mark.opencl
    def test_a_device(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        hidden = "raise ModuleNotFoundError('hidden', name='pyopencl')\n"
        (tmp_path / "pyopencl.py").write_text(hidden, encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        outcome = hello.run(named("opencl.py"))
        assert (outcome.ran, outcome.failed) == (False, False)
        assert "pyopencl" in (outcome.reason or "")
        assert "pip install" in (outcome.fix or "")

    def test_an_instruction(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hello.machine, "describe", lambda: {"isa": ["sse2"]})
        outcome = hello.run(named("avx.cpp"))
        assert (outcome.ran, outcome.failed) == (False, False)
        assert (outcome.reason or "").endswith(" fma")

    def test_a_program_that_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "numba_cpu.py"
        path.write_text(
            '# Fails.\n# 1. Prints.\nprint("one")\n# 2. Ends.\nraise SystemExit("too bad")\n', encoding="utf-8"
        )
        monkeypatch.setattr(hello, "_target", lambda _: hello.Target("cpu"))
        outcome = hello.run(Program(path))
        assert outcome.failed
        assert outcome.printed == {1: ["one"]}
        assert (outcome.reason or "").endswith(" 1: too bad"), "its exit code, and what it wrote"

    def test_a_program_that_does_not_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "numba_cpu.py"
        path.write_text("# Waits.\n# 1. Waits.\nimport time\n\ntime.sleep(600)\n", encoding="utf-8")
        monkeypatch.setattr(hello, "_target", lambda _: hello.Target("cpu"))
        monkeypatch.setattr(hello, "_LONGEST", 0.2)
        outcome = hello.run(Program(path))
        assert not outcome.ran
        assert "0.2 s" in (outcome.reason or "")


class TestShown:
    OUTCOME = Outcome(True, "c++ ...", {1: ["2 processors", "2 threads at most"], 3: ["0 1"]})

    @staticmethod
    def shown(outcome: Outcome, width: int) -> list[str]:
        out = Console(file=io.StringIO(), width=width, no_color=True, highlight=False)
        print_program(named("openmp.cpp"), outcome, out)
        assert isinstance(out.file, io.StringIO)
        return [line.rstrip() for line in out.file.getvalue().splitlines()]

    def test_code_and_effect_stand_side_by_side(self) -> None:
        lines = self.shown(self.OUTCOME, 120)
        (first,) = (line for line in lines if "omp_get_num_procs" in line)
        (third,) = (line for line in lines if '"%d ", runner' in line)
        assert re.fullmatch(r"  9   .*;  +2 processors", first)
        assert first.index("2 processors") == third.rindex("0 1")

    def test_or_below_one_another(self) -> None:
        lines = self.shown(self.OUTCOME, 70)
        at = lines.index("         2 processors")
        assert "omp_get_max_threads" in lines[at - 1]

    def test_nothing_of_the_source_is_lost(self) -> None:
        text = "\n".join(self.shown(self.OUTCOME, 200))
        for line in named("openmp.cpp").source.splitlines():
            assert line.lstrip().startswith("//") or line.strip() in text, line

    def test_what_is_emulated_says_so_before_its_steps(self) -> None:
        lines = self.shown(Outcome(True, "python", {}, "no GPU: a CPU runs the kernel", "needs one"), 120)
        assert lines.index("Emulated") < next(at for at, line in enumerate(lines) if line.startswith("1. "))

    @pytest.mark.parametrize("model", ["openmp", "sycl"])
    def test_the_source_as_it_is(self, model: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["hello", model, "--source"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        for program in programs.programs(model):
            assert program.source in out
        if model == "openmp":
            assert out == named("openmp.cpp").source


@pytest.mark.stamped
@pytest.mark.parametrize("model", [name for name in programs.models() if f"py-backends hello {name}" in to_run()])
def test_a_first_program_is_shown(
    model: str, outcomes: dict[str, Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The programs are run once, for all tests that look at them."""
    found = [outcomes[program.path.name] for program in programs.programs(model)]
    if not any(outcome.ran or outcome.failed for outcome in found):
        pytest.skip(f"{model}: {found[0].reason} (to change that: {found[0].fix})")
    monkeypatch.setattr(hello, "run", lambda program: outcomes[program.path.name])
    command = f"py-backends hello {model}"
    check(command, run(command, tmp_path), tmp_path)
