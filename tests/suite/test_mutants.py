"""The tool that breaks kernels: what it finds to break in each language, and what it says of it."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import nightly
from mutants import __main__ as tool
from mutants import c_family, equivalent, in_python, judge, places, report, texts
from mutants.equivalent import Equivalent, OutOfDate
from mutants.judge import CAUGHT, STILLBORN, SURVIVED, JudgeFailed, SuiteProcess, Verdict
from mutants.mutant import Mutant, mutants_of
from mutants.report import NOT_RUN
from mutants.results import Results
from mutants.session import sample
from mutants.texts import Context, Text

from py_backends.contract import Target

pytestmark = pytest.mark.slow

EVERY_TEXT = [text for backend in texts.backends() for text in texts.texts_of(backend)]


def mutants(backend: str, file: str) -> list[Mutant]:
    return [mutant for text in texts.texts_of(backend) if text.file == file for mutant in mutants_of(text)]


def found(backend: str, file: str, line: str) -> set[tuple[str, str]]:
    """The kinds and descriptions of all changes that begin in a line."""
    return {(each.change.kind, each.description) for each in mutants(backend, file) if each.source == line}


def test_what_a_text_includes_or_imports_is_of_it() -> None:
    of = {backend: {text.file for text in texts.texts_of(backend)} for backend in ("cpp", "numba_cpu")}
    assert "kernels/vecadd/tuned/pairs.hpp" in of["cpp"], "which an included file includes"
    assert "kernels/vecadd/tuned/numba_cpu_pairs.py" in of["numba_cpu"]


@pytest.mark.parametrize("text", EVERY_TEXT, ids=lambda text: f"{text.backend}-{text.file}")
def test_every_text_is_understood(text: Text) -> None:
    python = text.file.endswith(".py")
    tree = in_python.parsed(text.content) if python else c_family.parsed(text.content, Path(text.file).suffix)
    assert not [places.written(node) for node in places.nodes(tree.root_node) if node.is_error or node.is_missing]
    assert not tree.root_node.has_error, "words without a name, such as #endif, are missing too"
    of_jax = "kernels/transpose/lecture/jax.py", "kernels/scan/lecture/jax.py"
    assert mutants_of(text) or text.file in ("kernels/roots.hpp", "kernels/exponentials.hpp", *of_jax), "names alone"


@pytest.mark.parametrize("text", EVERY_TEXT, ids=lambda text: f"{text.backend}-{text.file}")
def test_a_mutant_differs_by_its_change_alone(text: Text) -> None:
    for mutant in mutants_of(text):
        change, before, after = mutant.change, text.content, mutant.content
        assert after != before
        assert after[: change.start] == before[: change.start]
        assert after[change.start + len(change.new.encode()) :] == before[change.end :]


def test_identifiers_are_unique_and_survive_other_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = (text for text in texts.texts_of("openmp") if text.file == "kernels/matmul/tuned/openmp.cpp")
    before = [mutant.identifier for mutant in mutants_of(text)]
    moved = b"// one line more\n\n" + text.content
    monkeypatch.setattr(Text, "content", moved)
    assert len(set(before)) == len(before)
    assert [mutant.identifier for mutant in mutants_of(text)] == before


LECTURE = "kernels/vecadd/lecture/"


def test_places_in_opencl_c() -> None:
    line = "if (i < n) c[i] = narrow(widen(a[i]) + widen(b[i]));"
    assert found("opencl", LECTURE + "opencl.cl", line) == {
        ("tail", "i < n -> !(i < n)"),
        ("relational", "< -> <="),
        ("bound", "n -> n - 1"),
        ("statement", "c[i] = narrow(widen(a[i]) + widen(b[i])); -> nothing"),
        ("index", "a -> b"),
        ("index", "b -> a"),
        ("arithmetic", "+ -> -"),
    }


def test_places_in_cuda() -> None:
    line = "const long long first = (long long)blockIdx.y * blockDim.y + threadIdx.y;"
    assert found("cuda", "kernels/matmul/lecture/cuda.cu", line) == {("arithmetic", "* -> +"), ("arithmetic", "+ -> -")}
    file = "kernels/matmul/tuned/cuda.cu"
    barrier = "__syncthreads();  // the next tile begins where this one ends"
    assert found("cuda", file, barrier) == {("barrier", "__syncthreads(); -> nothing")}


def test_places_in_sycl() -> None:
    file = "kernels/matmul/tuned/sycl.cpp"
    assert found("sycl", file, "sycl::group_barrier(item.get_group());") == {
        ("barrier", "sycl::group_barrier(item.get_group()); -> nothing"),
        ("barrier", "sycl::group_barrier(item.get_group()); -> nothing #2"),
    }
    line = "const Size depth = sycl::min(k - p, most_depth);"
    assert found("sycl", file, line) >= {
        ("tail", "sycl::min(k - p, most_depth) -> (k - p)"),
        ("tail", "sycl::min(k - p, most_depth) -> (most_depth)"),
    }


def test_places_in_openmp() -> None:
    file = "kernels/matmul/tuned/openmp.cpp"
    assert found("openmp", file, "#pragma omp for collapse(2) schedule(dynamic)") == {
        ("directive", "#pragma omp for collapse(2) schedule(dynamic) -> nothing"),
        ("directive", "collapse(2) -> nothing"),
        ("barrier", "with nowait"),
    }


def test_places_in_numba() -> None:
    file = "kernels/matmul/lecture/numba_cpu.py"
    assert found("numba_cpu", file, "for i in prange(m):") == {
        ("directive", "prange -> range"), ("index", "m -> n"), ("bound", "m -> m + 1"), ("bound", "m -> m - 1"),
    }  # fmt: skip
    assert found("numba_cpu", file, "sum = c.dtype.type(0)") == {("initial", "0 -> 1")}
    barriers = [
        each for each in mutants("numba_cuda", "kernels/matmul/tuned/numba_cuda.py") if each.change.kind == "barrier"
    ]
    assert [each.old for each in barriers] == ["cuda.syncthreads()"] * 2


def test_waits_of_the_host() -> None:
    assert [(each.change.kind, each.description) for each in mutants("sycl", "cpp_ext/sycl_compiler.cpp")] == [
        ("wait", "queue.wait_and_throw(); -> nothing")
    ]
    assert ("wait", "queue.finish() -> nothing") in found("opencl", "py_backends/backend/opencl.py", "queue.finish()")
    blocking = "self._cl.enqueue_copy(self._queue, array, buffer, is_blocking=True)"
    assert ("wait", "is_blocking=True -> is_blocking=False") in found(
        "opencl", "py_backends/backend/opencl.py", blocking
    )


def test_code_for_an_instruction_set_is_run_on_it() -> None:
    wide = mutants("avx", "kernels/simd.hpp")
    sets = {each.source: texts.instruction_set(each.context.conditions) for each in wide}
    assert sets["static void store(float* to, Register x) { _mm512_storeu_ps(to, x); }"] == "avx512"
    assert sets["static void store(float* to, Register x) { _mm256_storeu_ps(to, x); }"] == "avx2"
    assert sets["static void store(float* to, Register x) { _mm_storeu_ps(to, x); }"] == "sse"


@pytest.mark.opencl
def test_code_for_a_form_is_run_in_it() -> None:
    machine = texts.Machine("opencl")
    (text,) = (text for text in texts.texts_of("opencl") if text.file == "kernels/matmul/tuned/opencl.cl")
    assert machine.place(text, Context((("CPU", True),))).runs == (texts.Run("CPU"),)
    assert machine.place(text, Context((("CPU", False),))).runs == (texts.Run("GPU"),)


NARROW = ("float16", "int8")
WARPGROUPS = texts.Run("WARPGROUPS", NARROW)


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("source", "runs"),
    [
        pytest.param("j + 8 * s + 2 * t", (WARPGROUPS,), id="of warpgroups"),
        pytest.param(
            "e / 2 * 4 + lane % 4",
            (texts.Run(formats=NARROW), texts.Run("FLOAT64", ("float64",)), WARPGROUPS),
            id="of all",
        ),
    ],
)
def test_code_for_tensor_cores_is_run_by_them(source: str, runs: tuple[texts.Run, ...]) -> None:
    machine = texts.Machine("cuda")
    machine.targets = [Target("emulated", emulated=True)]  # on a machine with a GPU too
    found = [each for each in mutants("cuda", "kernels/matmul/tuned/cuda_tensor_cores.hpp") if source in each.source]
    assert found
    assert {machine.place(each.text, each.context).runs for each in found} == {(*runs, texts.Run())}


@pytest.mark.parametrize(
    ("backend", "form"),
    [
        ("opencl", "CPU"),
        ("opencl", "GPU"),
        ("sycl", "CPU"),
        ("sycl", "GPU"),
        ("cuda", "WARPGROUPS"),
        ("cuda", "FLOAT64"),
    ],
)
def test_the_clone_still_chooses_a_form_as_the_judge_knows_it(backend: str, form: str) -> None:
    """Else every mutant of that form would be called not judged."""
    ((name, changed),) = judge.files_of_form(backend, form).items()
    assert changed != (texts.CLONE / name).read_bytes()


def test_a_header_for_several_languages_has_code_that_runs_on_a_gpu_alone() -> None:
    gpu_only = [each for each in mutants("cpp", "kernels/formats.hpp") if each.old.startswith("asm")]
    assert gpu_only
    (reason,) = {texts.Machine("cpp").place(each.text, each.context).elsewhere for each in gpu_only}
    assert "GPU" in (reason or "")


def test_a_sample_stays_and_has_something_of_every_backend() -> None:
    everyone = [mutant for text in EVERY_TEXT for mutant in mutants_of(text)]
    drawn = sample(everyone, 3, seed=1)
    assert {mutant.backend for mutant in drawn} == set(texts.backends())
    assert sample(everyone[::-1], 3, seed=1) != drawn[::-1] or len(drawn) > 0
    assert {mutant.identifier for mutant in sample(everyone[::-1], 3, seed=1)} == {each.identifier for each in drawn}
    assert {mutant.identifier for mutant in sample(everyone, 3, seed=2)} != {each.identifier for each in drawn}


FILE = "kernels/vecadd/lecture/cpp.cpp"
LINE = "for (std::int64_t i = 0; i < n; ++i) c[i] = narrow<T>(widen(a[i]) + widen(b[i]));"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (Equivalent(FILE, ("for (;;) c[i] = a[i] + b[i];",), "so"), "no mutant of the line"),
        (Equivalent(FILE, (LINE,), "so", changes=("+ -> *",)), "no change '\\+ -> \\*'"),
        (Equivalent(FILE, (LINE,), "so", changes=("+ -> -",), kinds=("bound",)), "no bound of"),
        (Equivalent(FILE, (LINE,), "so", backends=("sycl",)), "is not run by sycl"),
        (Equivalent("kernels/vecadd/lecture/cpp.c", (LINE,), "so"), "no mutant of the line"),
    ],
)
def test_an_entry_that_matches_nothing_any_more_is_told(entry: Equivalent, words: str) -> None:
    with pytest.raises(OutOfDate, match=words):
        equivalent.check(mutants("cpp", FILE), [entry])


def test_the_list_of_equivalent_mutants_is_up_to_date() -> None:
    entries = equivalent.every()
    assert entries
    equivalent.check([mutant for text in EVERY_TEXT for mutant in mutants_of(text)], entries)


def test_of_equal_changes_an_entry_can_name_the_kind() -> None:
    line = "for (; i + 6 <= m; i += 6) tile<T, 6, width>(a + i * k, b + j, c + i * n + j, n, k);"
    file = "kernels/matmul/register_tile/openmp.cpp"
    entry = Equivalent(file, (line,), "a smaller tile takes what is left", changes=("6 -> 7",), kinds=("bound",))
    same = {each.change.kind: entry.matches(each) for each in mutants("openmp", file) if each.description == "6 -> 7"}
    assert same == {"bound": True, "initial": False}


def test_what_needs_more_than_there_is_is_not_run() -> None:
    entry = Equivalent(FILE, (LINE,), needs="a GPU", changes=("+ -> -",))
    some = mutants("cpp", FILE)
    assert list(equivalent.needs(some, [entry]).values()) == ["needs a GPU"]
    assert not equivalent.reasons(some, [entry])


def test_an_entry_with_a_word_too_many_is_told(tmp_path: Path) -> None:
    (tmp_path / "equivalent.toml").write_text(
        '[[equivalent]]\nfile = "a"\nlines = ["b"]\nreason = "c"\nbackend = "cpp"\n'
    )
    with pytest.raises(ValueError, match="unexpected keyword argument 'backend'"):
        equivalent.read(tmp_path / "equivalent.toml")


def test_the_share_is_of_those_that_live() -> None:
    some = mutants("cpp", FILE)[:5]
    outcomes = [CAUGHT, CAUGHT, CAUGHT, SURVIVED, STILLBORN]
    verdicts = {each.identifier: Verdict(what, "", 1.0) for each, what in zip(some, outcomes, strict=True)}
    rows = list(report.rows(report.outcomes(some, Results(verdicts), {}, {})))
    assert rows[0] == ("cpp", "5", "0", "0", "0", "5", "1", "3", "1", "75.0%", "75.0%"), "none was left out"


def test_of_a_sample_the_bounds_are_clopper_and_pearsons() -> None:
    caught = 59  # the fewest, none surviving, of which 95% follow
    bounds = report.percent_bounds(Counter({CAUGHT: caught, NOT_RUN: 1}))
    assert bounds == pytest.approx((100 * 0.05 ** (1 / caught), 100))
    low, high = report.percent_bounds(Counter({CAUGHT: 9, SURVIVED: 3, NOT_RUN: 1})) or (0, 0)
    assert 0 < low < 75 < high < 95
    assert report.percent_bounds(Counter()) is None


def test_a_process_that_does_not_begin_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(judge, "_LONGEST", 0.01)
    monkeypatch.setattr(os, "killpg", None)  # there is no group to kill, and 0 is the caller's own
    with open(reading, "rb", buffering=0) as answers:
        monkeypatch.setattr(SuiteProcess, "_ask", lambda *_: answers)
        with pytest.raises(JudgeFailed, match=r"has not begun to within"):
            SuiteProcess(tmp_path, "python").run([], {}, most_seconds=0.01)
    os.close(writing)


@pytest.mark.parametrize("content", ["{}", "[]", "7", "not JSON", '{"verdicts": {"a": {"outcome": 1}}, "times": {}}'])
def test_a_file_of_something_else_is_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    file = tmp_path / "results.json"
    file.write_text(content)
    assert tool.main(["--json", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(file) in line


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--backend", "numpyy"], "unknown backend 'numpyy'"),
        nightly(["--kernel", "matmull"], "unknown kernel 'matmull': did you mean 'matmul'?"),
        nightly(["--variant", "tunde"], "unknown variant 'tunde': did you mean 'tuned'?"),
        nightly(["--kind", "tali"], "unknown kind 'tali': did you mean 'tail'?"),
        nightly(["--again", "survive"], "unknown outcome 'survive': did you mean 'survived'?"),
        (["--only", "nosuch"], "unknown mutant 'nosuch': --list shows their names"),
        (["--most", "0"], "takes a whole number from 1 up, not '0'"),
    ],
)
def test_wrong_usage_is_told_in_a_line(capsys: pytest.CaptureFixture[str], wrong: list[str], words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        tool.main(wrong)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_model_of_which_nothing_was_run_has_not_enough() -> None:
    some = {"caught": mutants("cpp", FILE)[0], "other": mutants("python", PLAIN)[0]}
    verdicts = Results({some["caught"].identifier: Verdict(CAUGHT, "", 1.0)})

    def enough(*names: str, elsewhere: bool = False, shown: bool = False) -> bool:
        chosen = [some[name] for name in names]
        cannot = {some["other"].identifier: "needs a GPU"} if elsewhere else {}
        return tool._is_enough(report.outcomes(chosen, verdicts, {}, cannot), {}, shown=shown)

    assert enough("caught")
    assert not enough("caught", "other")
    assert not enough("other")
    assert enough("other", shown=True)
    assert enough("caught", "other", elsewhere=True), "this machine cannot run it"
    assert not enough("other", elsewhere=True)
    assert not enough()


PLAIN = "kernels/vecadd/lecture/python.py"


@pytest.mark.nightly
@pytest.mark.python
class TestWhole:
    """From the command line to the exit code, on the backend that starts fastest."""

    @pytest.fixture
    def wrong(self) -> Mutant:
        return next(each for each in mutants("python", PLAIN) if each.description == "+ -> -")

    @pytest.fixture(autouse=True)
    def known(self, tmp_path: Path) -> None:
        """How long the suite takes is known, so that it is not run on the unchanged text first."""
        Results(times={"python/cpu/vecadd/lecture": 30.0}).write(tmp_path / "results.json")

    def run(self, mutant: Mutant, tmp_path: Path, *options: str) -> int:
        return tool.main(
            ["--only", mutant.identifier, "--jobs", "1", "--json", str(tmp_path / "results.json"), *options]
        )

    def test_a_mutant_is_caught_and_remembered(
        self, wrong: Mutant, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = tmp_path / "page.md"
        assert self.run(wrong, tmp_path, "--markdown", str(page)) == 0
        verdict = Results.read(tmp_path / "results.json").verdicts[wrong.identifier]
        assert verdict.outcome == CAUGHT
        assert "| python | 1 | 0 | 0 | 0 | 1 | 0 | 1 | 0 | 100.0% |" in page.read_text()
        assert (texts.CLONE / PLAIN).read_bytes() == wrong.text.content, "the clone is left alone"
        monkeypatch.setattr(tool.Session, "_run", None)  # a second run has nothing to judge
        capsys.readouterr()
        assert self.run(wrong, tmp_path) == 0
        assert "100.0%" in capsys.readouterr().out

    def test_one_that_survives_is_named(
        self, wrong: Mutant, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Mutant, "content", wrong.text.content)  # it changes nothing
        assert self.run(wrong, tmp_path) == 1
        assert f"survived: {wrong.identifier}  {PLAIN}:{wrong.line}" in capsys.readouterr().out

    def test_one_that_is_listed_and_caught_is_told(
        self, wrong: Mutant, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        entry = Equivalent(PLAIN, (wrong.source,), "so", changes=(wrong.description,))
        monkeypatch.setattr(equivalent, "read", lambda: [entry])
        assert self.run(wrong, tmp_path) == 1
        assert "no mutant" in capsys.readouterr().err, "equivalent ones are not"
        assert self.run(wrong, tmp_path, "--equivalent") == 1
        assert "but caught" in capsys.readouterr().out


def test_a_list_that_is_out_of_date_stops_the_tool(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries: list[Any] = [Equivalent(PLAIN, ("nothing of the kind",), "so")]
    monkeypatch.setattr(equivalent, "every", lambda: entries)
    assert tool.main(["--backend", "python"]) == 1
    assert "'nothing of the kind'" in capsys.readouterr().err
