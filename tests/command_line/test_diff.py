"""Two runs compared: verdicts, what came and went, settings, exit codes; on made-up reports, and on a real run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Finished, run_here, run_in_terminal
from conftest import nightly
from made_rows import with_work

from py_backends.commands.diff.analysis import BETWEEN_RUNS, Difference, Pair, diff
from py_backends.errors import WrongRequest
from py_backends.results.report import Duration, Report, Row, Seconds, Speedup

SHAPE = {"m": 64, "n": 64, "k": 64}
SMALLER = {"m": 31, "n": 31, "k": 31}
MACHINE = {
    "cpu": "a CPU",
    "isa": ["sse2", "avx2"],
    "logical_cpus": 2,
    "packages": {"numpy": "2.3"},
    "versions": {"opencl pocl": "3.0"},
    "busy_cpus": 0.1,
}
SETTINGS = {"seed": 1, "threads": 2, "cache": "hot", "budget_seconds": 40.0, "command": "py-backends compare"}
SIX = [1.0, 1.001, 1.002, 1.003, 1.004, 1.005]
SIX_SLOWER = [1.3 * each for each in SIX]
EXACT = 0.001
"""Half of a narrow interval, of the figure."""


def speedup_of(figure: float, half_width: float | None = EXACT, same_shape: bool = True) -> Speedup:
    if half_width is None:
        return Speedup("numpy", figure, None, None, same_shape)
    return Speedup("numpy", figure, figure / (1 + half_width), figure * (1 + half_width), same_shape)


def seconds_of(figure: float) -> Seconds:
    return Seconds(kernel=Duration(figure, figure * 0.99, figure * 1.01, figure * 0.9, 30))


def row_of(backend: str, figure: float | None = None, half_width: float | None = EXACT, **others: Any) -> Row:
    """An `ok` row, so many times as fast as the baseline, unless it says otherwise; as a file without rounds has it."""
    versus = None if figure is None else speedup_of(figure, half_width)
    made = Row("matmul", backend, "cpu", "tuned", "float32", SHAPE, "ok", seconds=seconds_of(0.001), versus=versus)
    return with_work(replace(made, **others))


def timed(backend: str, seconds: Sequence[float | None], **others: Any) -> Row:
    """A row with the samples of its rounds; what its file says of them all is false, and not to be looked at."""
    return row_of(backend, 7.0, 0.5, kernel_seconds=list(seconds), **others)


def run_of(seconds: Mapping[str, Sequence[float | None]], baseline: Sequence[float | None] = (1.0,) * 30) -> Report:
    """A run of rows with these samples, and of the baseline."""
    return report_of(timed("numpy", baseline), *(timed(name, samples) for name, samples in seconds.items()))


def noisy(generator: np.random.Generator, noise: float, of_the_run: float) -> list[float]:
    """Samples of 30 rounds of one run, with long tails; the whole run deviates by so much of what single rounds do."""
    rounds = generator.standard_t(3, 30) / 1.134  # so that their median distance is that of a normal distribution
    return np.exp(noise * (of_the_run * generator.standard_normal() + rounds)).tolist()


def report_of(*rows: Row, **settings: Any) -> Report:
    return Report("2026-01-01", "0.1.0", MACHINE, SETTINGS | settings, list(rows))


def compared(old: Row, new: Row) -> Pair:
    """Two runs of one row."""
    (pair,) = diff(report_of(old), report_of(new)).pairs
    return pair


def verdicts(difference: Difference) -> dict[str, str | None]:
    return {pair.new.backend: pair.verdict for pair in difference.pairs}


class TestVerdict:
    @pytest.mark.parametrize(
        ("old", "new", "verdict"),
        [
            (2.0, 2.0, "same"),
            (2.0, 2.0 * 1.04, "same"),
            (2.0, 2.0 / 1.04, "same"),
            (2.0, 2.0 * 1.06, "faster"),
            (2.0, 2.0 / 1.06, "slower"),
            (0.02, 0.01, "slower"),
            (0.01, 0.02, "faster"),
            (2.0, 2.0 * 1.0501, "same"),
            (2.0, 2.0 * 1.0499, "same"),
            (2.0, 2.0 / 1.0501, "same"),
        ],
    )
    def test_is_by_what_two_runs_may_differ_by(self, old: float, new: float, verdict: str) -> None:
        assert BETWEEN_RUNS == 0.05, "the figures above are for this"
        pair = compared(row_of("openmp", old), row_of("openmp", new))
        assert pair.verdict == verdict
        assert pair.reason is None
        assert pair.change is not None
        assert pair.kind == "speedup"
        assert pair.change.median == pytest.approx(new / old)

    @pytest.mark.parametrize(("half_width", "verdict"), [(0.01, "slower"), (0.05, "unclear")])
    def test_needs_narrow_intervals_in_both_runs(self, half_width: float, verdict: str) -> None:
        exact, wide = row_of("openmp", 1.0, EXACT), row_of("openmp", 1.0, half_width)
        slower = 1 / 1.10
        assert compared(exact, row_of("openmp", slower, half_width)).verdict == verdict
        assert compared(wide, row_of("openmp", slower, EXACT)).verdict == verdict

    def test_without_rounds_the_interval_is_that_of_a_ratio_of_independent_estimates(self) -> None:
        """Against a simulation: half-widths of 3% and 4% make one of 5%, in logarithms."""
        change = compared(row_of("openmp", 2.0, math.expm1(0.03)), row_of("openmp", 3.0, math.expm1(0.04))).change
        assert change is not None
        generator = np.random.default_rng(5)
        old, new = (generator.normal(0, half / 1.96, 200_000) for half in (0.03, 0.04))
        low, high = 1.5 * np.exp(np.quantile(new - old, (0.025, 0.975)))
        assert change.low == pytest.approx(low, rel=0.01)
        assert change.high == pytest.approx(high, rel=0.01)

    def test_is_by_the_rounds_of_the_row_where_these_vary_more(self) -> None:
        """What varies from round to round varies from run to run, in both independently."""
        restless, quiet = np.exp(np.linspace(-0.05, 0.05, 31)), np.ones(31)
        wider = math.expm1(math.sqrt(2) * 1.96 / 0.6745 * 8 / 30 * 0.1)
        for seconds, band, verdict in ((restless, wider, "same"), (quiet, BETWEEN_RUNS, "slower")):
            old, new = (run_of({"openmp": (factor * seconds).tolist()}, [1.0] * 31) for factor in (1.0, 1.06))
            pair = diff(old, new).pairs[1]
            assert (pair.margin, pair.verdict) == (pytest.approx(band), verdict)

    @pytest.mark.parametrize(("percent", "verdict"), [(45.0, "unclear"), (90.0, "faster"), (None, "faster")])
    def test_a_row_that_moved_with_its_ceiling_is_left_open(self, percent: float | None, verdict: str) -> None:
        """In half the time it reaches 45% as before, of a ceiling that is twice as high; or 90% of the same one."""
        old = row_of("avx", 2.0, percent_of_ceiling=45.0)
        new = row_of("avx", 4.0, seconds=seconds_of(0.0005), percent_of_ceiling=percent)
        _, pair = diff(report_of(row_of("numpy", 1.0), old), report_of(row_of("numpy", 1.0), new)).pairs
        assert (pair.verdict, pair.reason is None) == (verdict, verdict == "faster")

    def test_holds_for_all_rows_together(self) -> None:
        """A row that one by one would be slower is unclear among many (Holm): six rounds are enough for one."""
        others = {f"b{number}": [0.94, 1.0, 1.06] * 2 for number in range(30)}
        for more, verdict in ({}, "slower"), (others, "unclear"):
            old, new = (run_of({"avx": samples, **more}, [1.0] * 6) for samples in (SIX, SIX_SLOWER))
            assert verdicts(diff(old, new))["avx"] == verdict


class TestRounds:
    """Verdicts are by what the files hold of every round."""

    def test_the_change_is_by_ratios_of_one_round_each(self) -> None:
        """However the machine slows down within a run and between both; a round without a sample counts for none."""
        drift = [1.0 + 0.1 * number for number in range(31)]
        old = run_of({"avx": [0.5 * each for each in drift]}, drift)
        new = run_of({"avx": [None, *(3.0 * each for each in drift[1:])]}, [3.0 * each for each in drift])
        pair = diff(old, new).pairs[1]
        assert pair.change is not None
        assert (pair.change.median, pair.verdict) == (pytest.approx(0.5), "slower")
        assert (len(pair.change.before), pair.change.rounds) == (31, 30)

    def test_the_baseline_is_the_one_on_the_most_threads(self) -> None:
        """It is what the run itself took; a file of `scaling` has it on several numbers of threads."""
        whole = [1.0, 3.0] * 15
        one, two = timed("numpy", [5.0, 4.0] * 15, threads=1), timed("numpy", whole, threads=2)
        old, new = (report_of(one, two, timed("avx", [factor * each for each in whole])) for factor in (1.0, 2.0))
        pair = diff(old, new).pairs[2]
        assert pair.change is not None
        assert (pair.change.low, pair.change.high) == (pytest.approx(0.5), pytest.approx(0.5))
        assert (pair.margin, pair.verdict) == (BETWEEN_RUNS, "slower")

    def test_of_a_row_at_another_shape_than_its_baseline(self) -> None:
        """The work of both shapes cancels; where it does not, in another file's shape, the speed-up has it."""
        shorter = {"shape": SMALLER, "requested": SHAPE, "versus": speedup_of(0.01, same_shape=False)}
        old, new = (report_of(timed("numpy", [1.0] * 30), timed("avx", [each] * 30, **shorter)) for each in (1.0, 1.0))
        pair = diff(old, new).pairs[1]
        assert (pair.kind, pair.verdict) == ("speedup", "same")
        rate = diff(run_of({"avx": [0.5] * 30}), new).pairs[1]
        assert rate.change is not None
        assert (rate.kind, rate.change.median) == ("rate", pytest.approx(0.01 / 2.0))

    @pytest.mark.parametrize("gone_on_with", ["old", "new"])
    def test_of_a_file_that_was_gone_on_with_are_not_paired(self, gone_on_with: str) -> None:
        """`--resume` keeps the baseline's own row, of rounds before those in which the others ran."""
        runs = {name: report_of(timed("numpy", [1.0] * 30), timed("avx", [1.0] * 30)) for name in ("old", "new")}
        spoilt = runs[gone_on_with]
        spoilt.rows[1] = row_of("avx", 1.0, kernel_seconds=[None] * 30 + [9.0] * 30)
        assert diff(runs["old"], runs["new"]).pairs[1].verdict == "same"

    @pytest.mark.parametrize(("low", "high"), [(1e-300, 1e300), (0.0, 1.0), (1.0, math.inf), (-1.0, 1.0), (2.0, 1.0)])
    def test_are_not_there_and_the_interval_is_odd(self, low: float, high: float) -> None:
        odd = replace(speedup_of(1.0), low=low, high=high)
        assert compared(row_of("avx", 1.0), row_of("avx", versus=odd)).verdict == "unclear"

    def test_in_one_file_alone_are_compared_with_what_the_other_says_of_them_all(self) -> None:
        without = report_of(row_of("numpy", 1.0), row_of("avx", 2.0))
        for seconds, verdict in ((0.5, "same"), (0.6, "slower"), (0.4, "faster")):
            assert verdicts(diff(without, run_of({"avx": [seconds] * 30})))["avx"] == verdict

    def test_that_others_wrote_may_hold_anything(self) -> None:
        odd = [math.inf, -1.0, 0.0, math.nan, 1e-320, 1e308, None]
        pair = diff(run_of({"avx": [1.0] * 30}), run_of({"avx": [*odd, *[1.0] * 23]})).pairs[1]
        assert pair.verdict == "same"

    @pytest.mark.parametrize("noise", [nightly(0.01), nightly(0.03), nightly(0.05)])
    def test_of_equal_runs_seldom_raise_a_false_alarm(self, noise: float) -> None:
        """In one whole diff of twenty at most; and one row among twelve that is 30% slower is seen.

        The runs deviate as those did by which the margin is chosen: by a quarter to nine tenths of what rounds do.
        """
        generator, of_the_runs, times = np.random.default_rng(8), np.linspace(0.25, 0.9, 12), 100
        false = seen = 0
        for _ in range(times):
            old, new = (
                {f"b{at}": noisy(generator, noise, each) for at, each in enumerate(of_the_runs)} for _ in range(2)
            )
            new["b5"] = [1.3 * each for each in new["b5"]]
            said = verdicts(diff(run_of(old), run_of(new)))
            seen += said.pop("b5") == "slower"
            false += not {"faster", "slower"}.isdisjoint(said.values())
        assert false <= times / 20
        assert seen >= 0.9 * times


class TestNotJudged:
    """There is a figure where there can be one; the verdict is `unclear`, and the reason says why."""

    def test_the_baseline_itself(self) -> None:
        old = row_of("numpy", 1.0, seconds=seconds_of(0.002))
        pair = compared(old, row_of("numpy", 1.0, seconds=seconds_of(0.001)))
        assert (pair.verdict, "itself" in (pair.reason or "")) == ("unclear", True)
        assert pair.change is not None
        assert (pair.kind, pair.change.median) == ("time", pytest.approx(2.0))

    @pytest.mark.parametrize(("old", "new", "which"), [(1.0, None, "new"), (None, 1.0, "old"), (None, None, "either")])
    def test_without_a_baseline(self, old: float | None, new: float | None, which: str) -> None:
        pair = compared(row_of("avx", old), row_of("avx", new, seconds=seconds_of(0.002)))
        assert pair.verdict == "unclear"
        assert re.search(rf"no baseline .*{which}", pair.reason or "")
        assert pair.change is not None
        assert (pair.kind, pair.change.median) == ("time", pytest.approx(0.5))

    def test_with_another_baseline(self) -> None:
        pair = compared(row_of("avx", 1.0), row_of("avx", versus=replace(speedup_of(0.5), baseline="python")))
        assert pair.verdict == "unclear"
        assert re.search("numpy .*python", pair.reason or "")

    def test_with_too_few_rounds(self) -> None:
        pair = compared(row_of("avx", 1.0), row_of("avx", 0.5, half_width=None))
        assert pair.verdict == "unclear"
        assert re.search("few .*new", pair.reason or "")
        assert pair.change is not None
        assert (pair.change.median, pair.change.low, pair.change.high) == (pytest.approx(0.5), None, None)

    def test_at_another_shape(self) -> None:
        shortened = row_of("avx", shape=SMALLER, requested=SHAPE, versus=speedup_of(0.5, same_shape=False))
        pair = compared(row_of("avx", 1.0), shortened)
        assert pair.verdict == "unclear"
        assert re.findall(r"\d+(?: x \d+)+", pair.reason or "") == ["31 x 31 x 31", "64 x 64 x 64"], "now, and before"
        assert pair.change is not None
        assert (pair.kind, pair.change.median) == ("rate", pytest.approx(0.5))

    def test_at_another_shape_without_a_baseline(self) -> None:
        pair = compared(row_of("avx"), row_of("avx", shape=SMALLER, requested=SHAPE))
        assert (pair.verdict, pair.change) == ("unclear", None)

    def test_with_its_baseline_at_another_shape(self) -> None:
        def run(baseline_shape: dict[str, int]) -> Report:
            baseline = row_of("numpy", 1.0, shape=baseline_shape, requested=SHAPE)
            return report_of(baseline, row_of("avx", versus=speedup_of(1.0, same_shape=False)))

        pairs = diff(run(SMALLER), run({"m": 15, "n": 15, "k": 15})).pairs
        assert re.search("baseline .*shape", pairs[1].reason or "")
        assert diff(run(SMALLER), run(SMALLER)).pairs[1].verdict == "same"

    @pytest.mark.parametrize("figure", [0.0, math.nan, math.inf, -1.0])
    def test_what_is_no_figure(self, figure: float) -> None:
        odd = replace(speedup_of(1.0), speedup=figure)
        for old, new in (odd, speedup_of(1.0)), (speedup_of(1.0), odd):
            pair = compared(row_of("avx", versus=old), row_of("avx", versus=new))
            assert (pair.verdict, pair.change) == ("unclear", None)

    def test_does_not_count_among_those_that_are_corrected(self) -> None:
        many = [row_of("python", None, target=f"device-{number}") for number in range(50)]
        old, new = (report_of(timed("numpy", [1.0] * 6), timed("avx", each), *many) for each in (SIX, SIX_SLOWER))
        assert verdicts(diff(old, new))["avx"] == "slower"


class TestRows:
    def test_are_matched_by_all_that_names_them(self) -> None:
        row = row_of("avx", 1.0)
        others = [
            replace(row, **{name: value})
            for name, value in {
                "kernel": "vecadd",
                "backend": "cpp",
                "target": "sse",
                "variant": "lecture",
                "dtype": "float64",
                "shape": SMALLER,
            }.items()
        ]
        difference = diff(report_of(row, *others), report_of(row))
        assert difference.went == others
        assert difference.came == []
        assert [pair.new for pair in difference.pairs] == [row]
        difference = diff(report_of(row), report_of(*others, row))
        assert difference.came == others
        assert difference.went == []

    def test_of_scaling_are_matched_by_their_threads(self) -> None:
        """Two files of other numbers of threads: what has no partner on as many has none."""
        on = {threads: row_of("avx", 1.0, threads=threads) for threads in (1, 2, 4)}
        difference = diff(report_of(on[1], on[2]), report_of(on[2], on[4]))
        assert [(pair.old.threads, pair.new.threads) for pair in difference.pairs] == [(2, 2)]
        assert (difference.went, difference.came) == ([on[1]], [on[4]])

    def test_of_machines_with_other_numbers_of_cpus_are_matched(self) -> None:
        assert compared(row_of("avx", 1.0, threads=2), row_of("avx", 1.0, threads=64)).old.threads == 2

    def test_are_matched_by_the_shape_that_was_asked_for(self) -> None:
        shortened = row_of("avx", shape=SMALLER, requested=SHAPE)
        asked_for_less = row_of("avx", 1.0, shape=SMALLER)
        difference = diff(report_of(shortened, asked_for_less), report_of(row_of("avx", 1.0)))
        assert difference.went == [asked_for_less]
        assert [pair.old for pair in difference.pairs] == [shortened]

    def test_of_one_name_are_matched_by_their_order(self) -> None:
        old = report_of(row_of("avx", 1.0), row_of("avx", 2.0), row_of("avx", 3.0))
        difference = diff(old, report_of(row_of("avx", 1.0), row_of("avx", 1.0)))
        assert [pair.verdict for pair in difference.pairs] == ["same", "slower"]
        assert difference.went == [old.rows[2]]

    def test_that_none_shares_are_refused(self) -> None:
        for old, new in (report_of(row_of("avx")), report_of(row_of("cpp"))), (report_of(), report_of()):
            with pytest.raises(WrongRequest, match="no row in common"):
                diff(old, new)

    @pytest.mark.parametrize(
        ("old", "new", "lost"),
        [
            *(("ok", status, True) for status in ("mismatch", "error", "crashed", "timeout", "impossible")),
            ("ok", "skipped", True),
            ("ok", "unavailable", True),
            ("emulated", "mismatch", True),
            ("emulated", "skipped", False),
            ("emulated", "emulated", False),
            ("mismatch", "mismatch", False),
            ("mismatch", "crashed", False),
            ("unavailable", "ok", False),
            ("mismatch", "ok", False),
        ],
    )
    def test_that_changed_their_status(self, old: str, new: str, lost: bool) -> None:
        difference = diff(report_of(row_of("avx", status=old)), report_of(row_of("avx", status=new)))
        (pair,) = difference.pairs
        assert (pair.lost, pair.verdict) == (lost, None)
        assert difference.is_worse() is lost

    @pytest.mark.parametrize(("status", "worse"), [("emulated", True), ("unavailable", True), ("ok", False)])
    def test_whose_device_is_gone(self, status: str, worse: bool) -> None:
        stays, gone = row_of("numpy", 1.0), row_of("cuda", 9.0, target="nvidia-h200")
        instead = row_of("cuda", target="emulated", status=status)
        difference = diff(report_of(stays, gone), report_of(stays, instead))
        assert (difference.went, difference.came) == ([gone], [instead])
        assert difference.is_worse() is worse
        assert not diff(report_of(stays, gone), report_of(stays)).is_worse(), "nobody asked for it"
        was_wrong = replace(gone, status="mismatch")
        assert not diff(report_of(stays, was_wrong), report_of(stays, instead)).is_worse(), "nothing is lost"

    @pytest.mark.parametrize(
        ("asked", "worse"), [(None, True), (["intel-cpu", "nvidia"], True), (["intel-cpu"], False), ("not told", False)]
    )
    def test_whose_device_is_gone_while_another_of_its_backend_stays(self, asked: Any, worse: bool) -> None:
        """A driver broke, and the gate passed: the backend still had the CPU."""
        stays = [row_of("numpy", 1.0), row_of("opencl", 2.0, target="intel-cpu")]
        gone = row_of("opencl", 9.0, target="nvidia")
        new = report_of(*stays)
        if asked != "not told":
            new.settings["request"] = {"targets": asked}
        difference = diff(report_of(*stays, gone), new)
        assert difference.went == [gone]
        assert difference.is_worse() is worse
        in_its_place = row_of("opencl", 9.0, target="nvidia-2")
        new.rows.append(in_its_place)
        assert not diff(report_of(*stays, gone), new).is_worse()
        new.rows.insert(0, row_of("opencl", target="pocl", status="unavailable"))
        assert diff(report_of(*stays, gone), new).is_worse(), "one that is missing counts, in whatever order they came"


class TestSettings:
    @pytest.mark.parametrize(
        ("of_machine", "of_settings", "differ"),
        [
            ({}, {}, []),
            ({"busy_cpus": 2.0, "load": 3}, {"budget_seconds": 5.0, "command": None}, []),
            ({"cpu": "another"}, {}, [("cpu", "", "a CPU", "another")]),
            ({"isa": ["sse2"]}, {}, [("isa", "avx2", "there", None)]),
            ({"isa": ["sse2", "avx2", "fma"]}, {}, [("isa", "fma", None, "there")]),
            ({"packages": {"numpy": "2.4"}}, {}, [("packages", "numpy", "2.3", "2.4")]),
            ({"packages": {}}, {}, [("packages", "numpy", "2.3", None)]),
            ({"versions": {"opencl pocl": "3.1"}}, {}, [("versions", "opencl pocl", "3.0", "3.1")]),
            ({"versions": {"sycl pocl": "3.1"}}, {}, []),
            ({"state": {"begin": {"load": [9.0], "governor": "powersave"}}}, {}, [("governor", "", None, "powersave")]),
            (
                {"state": {"begin": {"thread_settings": {"OMP_NUM_THREADS": "1"}}}},
                {},
                [("thread_settings", "OMP_NUM_THREADS", None, "1")],
            ),
            ({"os": "Linux 7"}, {"threads": 1}, [("threads", "", "2", "1"), ("os", "", None, "Linux 7")]),
            ({}, {"cache": "cold"}, [("cache", "", "hot", "cold")]),
            ({}, {"something_later": 1}, [("something_later", "", None, "1")]),
            ({}, {"something_later": [[1], {}]}, [("something_later", each, None, "there") for each in ("[1]", "{}")]),
        ],
        ids=str,
    )
    def test_that_differ(
        self, of_machine: dict[str, Any], of_settings: dict[str, Any], differ: list[tuple[str, str, Any, Any]]
    ) -> None:
        old, new = report_of(row_of("avx", 1.0)), report_of(row_of("avx", 1.0), **of_settings)
        new.machine = MACHINE | of_machine
        difference = diff(old, new)
        assert difference.settings == differ
        assert difference.other_cpu == ("cpu" in of_machine)

    def test_of_another_version(self) -> None:
        old = report_of(row_of("avx", 1.0))
        assert diff(old, replace(old, package_version="0.2")).settings == [("py-backends", "", "0.1.0", "0.2")]


class TestCommand:
    """Through the command line, with files."""

    def run(self, folder: Path, old: Report | str, new: Report | str, *options: str) -> Finished:
        paths = folder / "old.json", folder / "new.json"
        for path, content in zip(paths, (old, new), strict=True):
            path.write_text(content if isinstance(content, str) else content.to_json())
        return run_here("diff", *paths, *options)

    def test_a_run_against_itself_shows_no_change(self, tmp_path: Path) -> None:
        run = report_of(row_of("numpy", 1.0), row_of("avx", 2.0), row_of("cuda", status="emulated", reason="no GPU"))
        shown = self.run(tmp_path, run, run, "--fail-on", "slower")
        assert (shown.returncode, shown.stderr) == (0, "")
        assert "same run" in shown.stdout
        assert columns(shown, "avx")[-3:] == ["1.00", "±0.2%", "same"]
        assert re.search(r"^ *\* .*: numpy cpu$", shown.stdout, re.MULTILINE), "the baseline, by time alone"
        counts = re.findall(r"(\d) (\w+)", shown.stdout.splitlines()[-1])
        assert counts == [("3", "rows"), ("1", "unclear"), ("1", "same"), ("1", "not")]
        for heading in ("Settings", "Status", "Only"):
            assert heading not in shown.stdout

    @pytest.mark.parametrize(
        ("new", "code"),
        [
            (row_of("avx", 2.0), 0),
            (row_of("avx", 3.0), 0),
            (row_of("avx", 1.0, half_width=None), 0),
            (row_of("avx", 1.0), 1),
            (row_of("avx", status="mismatch", reason="1 element is wrong"), 1),
        ],
        ids=["same", "faster", "unclear", "slower", "mismatch"],
    )
    def test_fails_on_slower_where_it_is_told_to(self, tmp_path: Path, new: Row, code: int) -> None:
        runs = report_of(row_of("avx", 2.0)), report_of(new)
        assert self.run(tmp_path, *runs).returncode == 0
        assert self.run(tmp_path, *runs, "--fail-on", "slower").returncode == code

    @pytest.mark.parametrize(
        ("new", "code"),
        [
            ([row_of("avx", 2.0)], 0),
            ([row_of("avx", 3.0)], 0),
            ([row_of("avx", 1.0)], 1),
            ([row_of("avx", 1.0, half_width=None)], 1),
            ([row_of("avx", 2.0), row_of("numpy", 1.0)], 0),
            ([row_of("numpy", 1.0)], 1),
            ([row_of("avx", status="mismatch", reason="1 element is wrong")], 1),
        ],
        ids=["same", "faster", "slower", "unclear", "beside the baseline", "the baseline alone", "mismatch"],
    )
    def test_fails_on_unclear_where_it_is_told_to(self, tmp_path: Path, new: list[Row], code: int) -> None:
        old = report_of(row_of("avx", 2.0), row_of("numpy", 1.0))
        assert self.run(tmp_path, old, report_of(*new), "--fail-on", "unclear").returncode == code

    @pytest.mark.parametrize(
        ("rows", "guards"),
        [
            ([row_of("avx", 2.0)], True),
            ([row_of("avx", 2.0, half_width=None)], False),
            ([row_of("cuda", status="emulated", reason="no GPU")], False),
        ],
        ids=["same", "unclear", "not timed"],
    )
    def test_says_where_nothing_could_be_judged(self, tmp_path: Path, rows: list[Row], guards: bool) -> None:
        run = report_of(row_of("numpy", 1.0), *rows)
        shown = self.run(tmp_path, run, run, "--fail-on", "slower")
        assert shown.returncode == 0
        assert ("judged" in shown.stdout) is not guards

    def test_shows_all_that_differs(self, tmp_path: Path) -> None:
        old = report_of(row_of("openmp", 2.0), row_of("avx", 2.0), row_of("cpp", 0.5), row_of("sycl", 1.0))
        new = report_of(
            row_of("openmp", 1.5, seconds=seconds_of(0.002)),
            row_of("avx", status="crashed", reason="SIGSEGV"),
            row_of("sycl", 1.2),
            row_of("mkl", 3.0),
            threads=1,
        )
        new.machine = MACHINE | {"cpu": "another", "packages": {"numpy": "2.4", "numba": "1.0"}}
        shown = self.run(tmp_path, old, new)
        lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
        for line in (
            "threads 2 → 1",
            "cpu a CPU → another",
            "packages numpy 2.3 → 2.4, numba not there → 1.0",
            "matmul float32 64 x 64 x 64 same: within 10%",
            "openmp cpu tuned 1.00 ms → 2.00 ms 2.00 → 1.50 0.750 ±0.2% slower",
            "sycl cpu tuned 1.00 ms → 1.00 ms 1.00 → 1.20 1.20 ±0.2% faster",
            "avx cpu tuned (matmul float32 64 x 64 x 64) ok → crashed: SIGSEGV",
            "mkl cpu tuned (matmul float32 64 x 64 x 64) ok",
            "cpp cpu tuned (matmul float32 64 x 64 x 64) ok",
            "3 rows in both runs: 1 slower, 1 faster, 1 not timed in both. 1 row lost.",
        ):
            assert line in lines
        assert any("CPU differs" in line for line in lines)
        listed = {"Only in the new run": "mkl", "Only in the old run": "cpp", "Status changed": "avx"}
        for heading, backend in listed.items():
            assert lines[lines.index(heading) + 1].startswith(f"{backend} cpu tuned (matmul")
        assert max(map(len, shown.stdout.splitlines())) <= 120

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (None, "No such file"),
            ("", "holds no results"),
            ("{", "holds no results"),
            ("[1, 2]", "holds no results"),
            ("{}", "holds no results"),
            ('{"schema_version": 2, "rows": 3}', "holds no results"),
            ('{"schema_version": 1}', "schema version 1, but only 2 is supported"),
            ("\0\ud800", "holds no results"),
            ('{"a": "\\ud800"', "holds no results"),
            ('{"a": "\\ud800", "b": 1' + "0" * 5000 + "}", "holds no results"),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("broken", ["old.json", "new.json"])
    def test_a_broken_file_is_one_line(self, tmp_path: Path, content: str | None, words: str, broken: str) -> None:
        for name in ("old.json", "new.json"):
            (tmp_path / name).write_text(report_of(row_of("avx", 2.0)).to_json())
        if content is None:
            (tmp_path / broken).unlink()
        else:
            (tmp_path / broken).write_bytes(content.encode(errors="surrogatepass"))
        assert_refused(run_here("diff", tmp_path / "old.json", tmp_path / "new.json"), words, broken)

    def test_wrong_usage_is_one_line(self, tmp_path: Path) -> None:
        path = tmp_path / "run.json"
        path.write_text(report_of(row_of("avx", 2.0)).to_json())
        assert_refused(run_here("diff"), "OLD")
        assert_refused(run_here("diff", path), "NEW")
        assert_refused(run_here("diff", path, path, path), "unknown arguments")
        assert_refused(run_here("diff", path, path, "--fail-on", "faster"), "slower")
        assert_refused(run_here("diff", path, tmp_path), "Is a directory")
        assert_refused(self.run(tmp_path, report_of(row_of("avx")), report_of(row_of("cpp"))), "no row in common")

    def test_reads_what_an_earlier_version_wrote(self, tmp_path: Path) -> None:
        """Results without what was added since: controls, verdicts, the shape that was asked for."""
        written = json.loads(report_of(row_of("avx", 2.0)).to_json())
        for name in ("control", "ceilings", "rounds"):
            del written[name]
        for name in ("requested", "finished", "percent_of_ceiling"):
            del written["rows"][0][name]
        for name in ("verdict", "rounds", "converged"):
            del written["rows"][0]["versus"][name]
        shown = self.run(tmp_path, json.dumps(written), report_of(row_of("avx", 1.0)))
        assert columns(shown, "avx")[-1] == "slower"

    @pytest.mark.parametrize("width", [80, 30])
    def test_a_narrow_terminal_keeps_backend_change_and_verdict(self, tmp_path: Path, width: int) -> None:
        for name, figure in ("old", 2.0), ("new", 1.0):
            (tmp_path / name).write_text(report_of(row_of("numba_cpu", figure, target="a-target")).to_json())
        code, printed = run_in_terminal("diff", str(tmp_path / "old"), str(tmp_path / "new"), columns=width)
        assert code == 0
        (line,) = [line for line in printed.splitlines() if "numba_cpu" in line]
        assert "0.500" in line
        assert "slower" in line
        assert ("a-target" in line) == (width >= 50)


def columns(shown: Finished, backend: str) -> list[str]:
    """The words of a row of the table; an arrow between two figures is none of them."""
    (line,) = [line for line in shown.stdout.splitlines() if line.startswith(f"  {backend} ") and "→" in line]
    return line.replace("→", "").split()


def assert_refused(run: Finished, *words: str) -> None:
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert line.startswith("py-backends diff: error: ")
    for word in words:
        assert word in line
