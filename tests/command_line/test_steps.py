"""Steps from `lecture` to `tuned`: the data of the kernels, and what the ladder, `show` and the page make of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from commands import CLONE, run_command, run_here
from made_rows import with_work
from rich.console import Console
from test_ladder import found_on, report_of, row_of

from py_backends import registry
from py_backends.commands.ladder import picture
from py_backends.commands.ladder import plan as ladder
from py_backends.commands.ladder.analysis import climbs
from py_backends.commands.ladder.plan import chains
from py_backends.commands.ladder.table import print_report
from py_backends.commands.report import steps
from py_backends.contract import Ladder, Problem, Target
from py_backends.display import units
from py_backends.errors import WrongRequest
from py_backends.kernel_text import KernelText
from py_backends.plugins import checked_problem
from py_backends.results.report import Report, Row

CHAINS = [(kernel, chain) for kernel, some in chains().items() for chain in some]
MORE = len(chains()["matmul"][0].rungs) - 1
"""So many rungs are above the first one on a CPU."""
MOST_LINES = 60


def texts_of(kernel: str, chain: Ladder) -> list[KernelText]:
    return [registry.kernel_texts(kernel, rung.backend)[rung.variant] for rung in chain.rungs]


def rows_of(kernel: str = "matmul", dtype: str = "float32", at: int = 0) -> list[Row]:
    """Every step of a made-up run at one shape, each twice as fast as the one before."""
    rungs = chains()[kernel][at].rungs
    return [row_of(rung.backend, rung.variant, 2.0**power, dtype=dtype) for power, rung in enumerate(rungs)]


def printed(report: Report) -> str:
    out = Console(width=150, no_color=True, force_terminal=False)
    with out.capture() as captured:
        print_report(report, out)
    return captured.get()


@pytest.mark.parametrize(("kernel", "chain"), CHAINS, ids=[f"{kernel}-{chain.name}" for kernel, chain in CHAINS])
class TestData:
    def test_leads_from_lecture_to_tuned(self, kernel: str, chain: Ladder) -> None:
        variants = [rung.variant for rung in chain.rungs]
        assert "lecture" in variants[:2]  # what is wrong with a kernel may come before the right one
        assert variants[-1] == "tuned"
        assert chain.name
        assert len(chain.sizes) == len(registry.problem(kernel).parameters)

    def test_every_step_has_both_formats(self, kernel: str, chain: Ladder) -> None:
        for text in texts_of(kernel, chain):
            assert {"float32", "float64"} <= set(text.dtypes), text.place

    def test_a_step_changes_few_lines(self, kernel: str, chain: Ladder) -> None:
        texts = texts_of(kernel, chain)
        for old, new in pairwise(texts):
            lines = list(difflib.ndiff(old.text.splitlines(), new.text.splitlines()))
            assert sum(line.startswith("+ ") for line in lines) <= MOST_LINES, new.place

    @pytest.mark.documents
    def test_is_in_the_document(self, kernel: str, chain: Ladder) -> None:
        name = {"CPU": "steps.md", "GPU": "steps_cuda.md"}[chain.name]
        document = (CLONE / "docs" / name).read_text(encoding="utf-8")
        for rung, text in zip(chain.rungs, texts_of(kernel, chain), strict=True):
            assert f"| {rung.idea} | `{text.place}` |" in document


def test_chains_of_a_kernel_have_names_of_their_own() -> None:
    for some in chains().values():
        assert len({chain.name for chain in some}) == len(some)


def test_no_step_is_taken_where_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variant in ("a_step", "lecture", "another"):
        (tmp_path / variant).mkdir()
        (tmp_path / variant / "fingers.py").touch()
    monkeypatch.setattr(registry, "_folders_of_texts", lambda *_: [(tmp_path, None)])
    assert list(registry.kernel_files("matmul", "fingers")) == ["lecture", "a_step", "another"]


class Stairs(type(registry.problem("vecadd"))):  # type: ignore[misc]  # a class that is known at run time
    name = "stairs"
    steps: Any = "a_step"


def test_a_plugin_with_other_steps_is_refused() -> None:
    made: Problem = Stairs()
    with pytest.raises(WrongRequest, match="its steps are 'a_step', not a tuple of ladders"):
        checked_problem(made, "stairs")


class TestClimb:
    def test_is_that_of_the_chain_alone(self) -> None:
        (climb,) = climbs(report_of(*rows_of(), row_of("numpy", "lecture", 9.0, dtype="float32")))
        assert climb.ladder is chains()["matmul"][0]
        gains = [step.over_below.speedup for step in climb.steps if step.over_below]
        assert gains == pytest.approx([2.0] * MORE, rel=0.01)
        assert climb.together == pytest.approx(2**MORE, rel=0.01)

    def test_stands_beside_the_ladder_where_both_were_run(self) -> None:
        python = row_of("python", "lecture", 0.02, dtype="float32")
        assert [climb.ladder.name for climb in climbs(report_of(*rows_of(), python))] == ["CPU", None]

    def test_needs_every_step(self) -> None:
        rows = [row for row in rows_of() if row.variant in ("lecture", "tuned")]
        assert all(climb.ladder.name is None for climb in climbs(report_of(*rows)))

    def test_says_nothing_of_all_steps_together_where_one_is_missing(self) -> None:
        rows = rows_of()
        rows[3] = replace(rows[3], status="crashed", reason="it ended by SIGSEGV", seconds=None, rate=None)
        (climb,) = climbs(report_of(*rows))
        assert climb.together is None
        assert [rung.variant for rung, _ in climb.missing] == [rows[3].variant]


class TestPlan:
    def test_is_every_step_at_the_sizes_of_its_chain(self) -> None:
        plan = ladder.plan({}, ["float32", "float64"], steps=True)
        specs = plan.specs([each for name in plan.backends for each in found_on(name, Target("cpu"))])
        for kernel, chain in CHAINS:
            for dtype in ("float32", "float64"):
                its = {(spec.backend, spec.variant) for spec in specs if (spec.kernel, spec.dtype) == (kernel, dtype)}
                assert its >= {(rung.backend, rung.variant) for rung in chain.rungs}
        texts = {(kernel, rung.backend, rung.variant) for kernel, chain in CHAINS for rung in chain.rungs}
        others = {(spec.kernel, spec.backend, spec.variant) for spec in specs} - texts
        assert {backend for _, backend, _ in others} == {"numpy"}

    def test_has_no_baseline_at_a_shape_whose_steps_all_lack_their_device(self) -> None:
        plan = ladder.plan({}, ["float32"], steps=True)
        emulated = Target("emulated", emulated=True, reason="no driver")
        found = [
            each for name in plan.backends for each in found_on(name, emulated if name == "cuda" else Target("cpu"))
        ]
        specs = plan.specs(found)
        sizes = {spec.sizes for spec in specs if (spec.kernel, spec.backend) == ("matmul", "numpy")}
        assert sizes == {chain.sizes for chain in chains()["matmul"] if chain.rungs[0].backend != "cuda"}
        assert "cuda" in {spec.backend for spec in specs}, "of what is missing it says so"

    def test_is_of_the_kernels_that_have_a_shape(self) -> None:
        plan = ladder.plan({"vecadd": [(99,)]}, ["float32"], steps=True)
        specs = plan.specs(found_on("cpp", Target("cpu")))
        assert {(spec.kernel, spec.sizes) for spec in specs} == {("vecadd", (99,))}

    def test_is_of_formats_that_all_steps_have(self) -> None:
        with pytest.raises(WrongRequest, match=r"the step \w+ of matmul is in float32, float64, not in bfloat16"):
            ladder.plan({"matmul": [(9, 9, 9)]}, ["bfloat16"], steps=True)


class TestViews:
    def test_the_table_has_no_published_figures(self) -> None:
        text = printed(report_of(*rows_of()))
        assert "published" not in text
        assert "cpp lecture" in text
        assert f"multiplied: {units.figure(2**MORE)}" in text

    def test_the_table_of_vecadd_is_in_bytes(self) -> None:
        rows = [with_work(replace(row, kernel="vecadd", shape={"n": 8}, requested=None)) for row in rows_of("vecadd")]
        text = printed(report_of(*rows))
        assert "GB/s" in text
        assert "of ceiling" in text

    def test_the_picture_has_no_published_figures(self) -> None:
        report = report_of(*rows_of())
        assert "ublished" not in picture.describe(report)
        (axes,) = picture.draw(report).axes
        assert "cpp lecture" in axes.get_xlabel()

    def test_the_page_has_each_beside_the_next_one(self) -> None:
        (walk,) = steps.walks(report_of(*rows_of(), *rows_of(dtype="float64")))
        variants = [[side.path.split("/")[2] for side in pair] for pair in walk.pairs]
        rungs = [rung.variant for rung in chains()["matmul"][0].rungs]
        assert variants == [list(pair) for pair in pairwise(rungs)]
        left, right = walk.pairs[2]
        assert [figure.split()[0] for figure in right.figures] == ["float32", "float64"]
        assert "8.00 GFLOP/s" in right.figures[0]
        assert "2.00x faster" in right.figures[0]
        assert 'class="line changed"' in right.code
        assert str(left.code).count("line changed") < left.code.count("\n")

    def test_the_page_says_at_which_size_a_step_ran(self) -> None:
        first, *others = rows_of()
        smaller = replace(first, shape=dict.fromkeys(first.shape, 3), requested=first.shape)
        (walk,) = steps.walks(report_of(smaller, *others))
        left, right = walk.pairs[0]
        assert " at 3" in left.figures[0]
        assert " at " not in right.figures[0]

    def test_marked_lines_are_those_that_the_other_lacks(self) -> None:
        old, new = texts_of("matmul", chains()["matmul"][0])[2:4]
        gone, come = steps.changed(old, new)
        kept = [[line for at, line in enumerate(text.text.rstrip().splitlines()) if at not in marked]
                for text, marked in ((old, gone), (new, come))]  # fmt: skip
        assert kept[0] == kept[1]


class TestShow:
    def test_shows_the_first_whole_and_the_others_as_differences(self) -> None:
        run = run_here("show", "matmul", "--steps")
        assert run.returncode == 0, run.stderr
        first, *others = texts_of("matmul", chains()["matmul"][0])
        assert first.text.rstrip() in run.stdout
        places = [line.removeprefix("+++ ") for line in run.stdout.splitlines() if line.startswith("+++ ")]
        assert places[: len(others)] == [text.place for text in others]
        assert any(re.match(".*: kernels/matmul/tuned/blocked.hpp$", line) for line in run.stdout.splitlines())
        titles = [line for line in run.stdout.splitlines() if re.match(r"[CG]PU, step ", line)]
        rungs = [(chain.name, at, rung) for chain in chains()["matmul"] for at, rung in enumerate(chain.rungs, 1)]
        assert titles == [f"{name}, step {at}: {rung.idea}" for name, at, rung in rungs]

    @pytest.mark.parametrize(
        ("command", "words"),
        [
            (("show", "matmul", "--steps", "--variant", "tuned"), "leave out --backend and --variant"),
            (("ladder", "--steps", "--formats"), "not allowed with argument"),
        ],
    )
    def test_wrong_usage_ends_with_2(self, command: Sequence[str], words: str) -> None:
        run = run_command(*command)
        assert (run.returncode, run.stdout) == (2, "")
        assert words in run.stderr
        assert len(run.stderr.splitlines()) == 1
