"""The tables of a comparison and what stands below them, on made-up reports."""

from __future__ import annotations

import html
import io
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_rows import with_work
from rich.text import Text

from py_backends.commands import _notebook
from py_backends.commands.compare.table import print_report
from py_backends.display import comparison, console, layout, remarks
from py_backends.errors import WrongRequest
from py_backends.results.report import (
    BOUND_WIDTH,
    FUNCTIONS,
    Communication,
    Duration,
    Rate,
    Report,
    Rounds,
    Row,
    Seconds,
    ShownInNotebooks,
    Speedup,
)
from py_backends.results.roofline import UNCERTAIN

ASKED, SMALLER = {"m": 521, "n": 509, "k": 499}, {"m": 261, "n": 255, "k": 249}
FEW = "3 of the 6 samples that an interval needs"


def row(backend: str, variant: str = "tuned", *, shape: dict[str, int] = ASKED, **others: Any) -> Row:
    """A row of matmul that ran and was timed; shortened if its shape is another."""
    seconds = Seconds(kernel=Duration(1e-3, 0.99e-3, 1.01e-3, 1e-3, 30))
    status = others.pop("status", "ok")
    fields: dict[str, Any] = {"seconds": seconds, "rate": Rate(10.0, 1.0), "percent_of_ceiling": 65.0} | others
    requested = None if shape == ASKED else ASKED
    return with_work(Row("matmul", backend, "cpu", variant, "float32", shape, status, requested=requested, **fields))


def report_of(*rows: Row, baseline_at: dict[str, int] = ASKED, rounds: Rounds | None = None) -> Report:
    """A report of these rows, which are all compared with numpy at its shape. None of them has converged."""
    compared = [replace(each, versus=Speedup("numpy", 1.0, None, None, each.shape == baseline_at)) for each in rows]
    return Report("now", "0", {}, {}, compared, rounds=rounds)


def footnotes(report: Report) -> list[str]:
    (section,) = comparison.sections(report)
    return list(section.footnotes)


class TestPerCentsOfTheCeiling:
    def cell(self, report: Report) -> str:
        (section,) = comparison.sections(report)
        return str(section.rows[0][section.header.index("of ceiling")])

    def test_are_marked_where_the_rounds_were_disturbed(self) -> None:
        disturbed = report_of(row("numpy"), rounds=Rounds(3, 3, {"others": 3}))
        assert self.cell(disturbed) == "~65%"
        assert any(re.match("~ .*other processes", each) for each in footnotes(disturbed))

    def test_are_marked_where_the_time_is_hardly_known(self) -> None:
        report = report_of(row("numpy", seconds=Seconds(kernel=Duration(1e-3, 0.5e-3, 1.5e-3, 1e-3, 6))))
        assert self.cell(report) == "~65%"
        assert any(re.match("~ .*±25%", each) for each in footnotes(report))

    def test_are_else_as_they_are(self) -> None:
        report = report_of(row("numpy"), rounds=Rounds(30, 28, {"steal": 2}))
        assert self.cell(report) == "65%"
        assert not [each for each in footnotes(report) if each.startswith("~")]

    def test_have_one_note_where_they_are_missing(self) -> None:
        rows = [row(name, percent_of_ceiling=None, note=UNCERTAIN) for name in ("mkl", "avx")]
        (remark,) = remarks.notes(report_of(*rows, row("numpy")))
        assert (remark.subject, remark.text) == ("several", f"{UNCERTAIN}: mkl cpu, avx cpu")


@pytest.mark.parametrize(
    ("taken", "kept", "disturbed", "mostly"),
    [(10, 4, 6, True), (10, 5, 5, False), (10, 10, 3, True), (10, 10, 0, False), (9, 4, 5, True)],
)
def test_most_rounds_are_disturbed_where_fewer_than_half_are_left(
    taken: int, kept: int, disturbed: int, mostly: bool
) -> None:
    """Or where all were kept, since too few others would be left."""
    rounds = Rounds(taken, kept, {"others": disturbed} if disturbed else {})
    assert report_of(row("numpy"), rounds=rounds).mostly_disturbed == mostly


def test_a_title_says_the_threads_where_there_are_several_numbers_of_them() -> None:
    one, other = (replace(row("numpy"), threads=threads) for threads in (1, 2))
    assert [each.title for each in comparison.sections(report_of(one, row("cpp")))] == [
        "matmul  float32  521 x 509 x 499"
    ]
    titles = [each.title for each in comparison.sections(report_of(one, other))]
    assert [each.split("  ")[-1] for each in titles] == ["1 thread", "2 threads"]


def test_the_heading_says_which_python_and_seed_and_how_many_threads_of_all() -> None:
    report = replace(report_of(row("numpy")), machine={"python": "3.11.7", "logical_cpus": 4}, settings={"threads": 2})
    assert layout.heading(report)[-2:] == ["Python 3.11.7", "2 threads"]
    report.settings |= {"threads": 4, "seed": 7}
    assert layout.heading(report)[-2:] == ["Python 3.11.7", "seed 7"]


@pytest.mark.parametrize(
    ("low", "high", "sure"),
    [(0.75, 1.25, True), (0.74, 1.25, False), (0.75, 1.26, False), (None, None, True), (0.1, None, True)],
)
def test_a_time_is_sure_within_a_quarter_of_it(low: float | None, high: float | None, sure: bool) -> None:
    timed = row("cpp", seconds=Seconds(kernel=Duration(1.0, low, high, 0.1, 30)))
    assert timed.time_is_sure == sure
    assert report_of(timed).is_unsure_of(timed) != sure
    assert replace(timed, status="mismatch").time_is_sure, "it has no time"


def test_the_part_in_which_ranks_communicate_is_of_the_kernels_time() -> None:
    told = Communication(2.5e-4, [0], 0.0)
    assert row("mpi", communication=told).communicating == 0.25
    assert row("mpi", communication=Communication(2.0, [0], 0.0)).communicating == 1, "its clock is another one"
    assert row("cpp").communicating is None
    assert row("mpi", communication=told, seconds=None).communicating is None
    no_time = Duration(0.0, None, None, 0.0, 1)
    assert row("mpi", communication=told, seconds=Seconds(kernel=no_time)).communicating == 0


def test_what_makes_all_times_worse_is_said_first() -> None:
    report = report_of(row("numpy"), rounds=Rounds(3, 3, {"others": 3}))
    assert (layout.warning(report) or "").startswith("Disturbed rounds count")
    report.machine, report.settings = {"state": {"begin": {"quota": 0.5}}}, {"threads": 1}
    assert (layout.warning(report) or "").startswith("This process may use the time of 0.5 CPUs: ")
    report.machine, report.rounds = {"state": {"begin": {"quota": 2.0}}}, Rounds(3, 3, {})
    assert layout.warning(report) is None


def test_a_narrow_terminal_drops_columns_one_after_the_other() -> None:
    """The error first, and never the backend, the time and the comparison."""
    (section,) = comparison.sections(report_of(row("numpy"), row("cpp"), row("cpp", "lecture")))
    dropped: list[str] = []
    for width in range(120, 39, -1):
        text = io.StringIO()
        console.print_section(section, console.console(file=text, width=width))
        dropped += [name for name in section.header if name not in dropped and name not in text.getvalue()]
    assert dropped == ["error/bound", "end to end", "of ceiling", "GFLOP/s", "variant", "target"]


def test_a_race_says_of_how_many_functions_it_knows_nothing() -> None:
    report = report_of(row("f()"), row("g()", status="skipped"))
    report.settings = {FUNCTIONS: {}}
    said = "1 row ran, and is right. Of the other 1 nobody knows: see why they did not run."
    assert layout.verdict(report) == (said, True)


def test_a_race_whose_bound_is_wider_than_the_values_calls_nothing_right() -> None:
    """What is outside such a bound is wrong all the same."""
    report = report_of(row("numpy"), row("cpp"))
    for width, text, code in ((6.4, "2 rows ran: nobody knows", 2), (1.0, "2 rows ran, and all are right.", 0)):
        report.settings = {BOUND_WIDTH: width}
        assert layout.verdict(report)[0].startswith(text)
        assert report.exit_code() == code
    report.settings = {BOUND_WIDTH: 6.4}
    report.rows[0] = replace(report.rows[0], status="mismatch")
    said = "1 of 2 rows that ran went wrong: 1 mismatch. Of the others nobody knows whether they are right."
    assert layout.verdict(report) == (said, True)
    assert report.exit_code() == 1
    report.rows[1] = replace(report.rows[1], status="crashed")
    said, bad = layout.verdict(report)
    assert bad
    assert "nobody knows" not in said, "there are no others"
    report.interrupted = True
    assert report.exit_code() == 130


def test_a_row_whose_others_did_not_run_says_why_it_stands_alone() -> None:
    missing: dict[str, Any] = {"status": "unavailable", "seconds": None, "rate": None}
    others = [row("cuda", variant, **missing) for variant in ("lecture", "tuned")]
    words = "nothing else ran at this shape: Not run says why"
    assert words in footnotes(report_of(row("numpy"), *others))
    assert words not in footnotes(report_of(row("numpy"), row("cpp"), *others))
    assert words not in footnotes(report_of(row("numpy")))


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("ok", "every row within its error bound"),
        ("unavailable", "every row within its error bound"),
        ("mismatch", "a right row agrees within its error bound"),
        ("crashed", "a right row agrees within its error bound"),
    ],
)
def test_the_heading_does_not_say_that_a_wrong_row_is_right(status: str, said: str) -> None:
    (section,) = comparison.sections(report_of(row("numpy"), row("cpp", status=status, seconds=None, rate=None)))
    assert section.subtitle == said


def test_rows_without_a_time_stand_below_with_the_reason_and_wrong_ones_last() -> None:
    others = [
        row("mpi", status="crashed", reason="it died", fix="start it again", seconds=None, rate=None),
        row("python", seconds=None, rate=None),
        row("cuda", status="emulated", reason="no driver", shape=SMALLER, seconds=None, rate=None),
    ]
    (section,) = comparison.sections(report_of(row("numpy"), *others))
    assert [cells[0] for cells in section.rows] == ["numpy"]
    untimed, emulated, crashed = section.lines
    assert [each.names[0] for each in section.lines] == ["python", "cuda", "mpi"]
    assert [each.wrong for each in section.lines] == [False, False, True]
    assert "261 x 255 x 249" in emulated.text
    assert "no driver" in emulated.text
    assert "CPU" not in untimed.text
    assert crashed.text == "crashed: it died; start it again"


def test_where_arrays_lie_is_said_beside_the_caches() -> None:
    report = report_of(row("numpy"))
    report.machine["cache_bytes"] = {"L2": 2**20, "L3": 2**25}
    words = "; caches L2 1 MiB, L3 32 MiB"
    assert [each for each in footnotes(report) if re.fullmatch(rf"arrays take \S+ [kM]B{words}", each)]
    report.machine["cache_bytes"] = {}
    assert not [each for each in footnotes(report) if "arrays take" in each]


class TestStars:
    def test_are_explained_by_a_shortened_baseline(self) -> None:
        rows = row("openmp"), row("numpy", shape=SMALLER), row("mkl", shape=SMALLER)
        shortened, legend, *_ = footnotes(report_of(*rows, baseline_at=SMALLER))
        assert re.fullmatch("[^*]*261 x 255 x 249: numpy cpu, mkl cpu", shortened)
        assert re.fullmatch(r"\* .*rate: numpy .*261 x 255 x 249", legend)

    def test_are_explained_by_a_shortened_row(self) -> None:
        legend, *_ = footnotes(report_of(row("numpy"), row("python", shape=SMALLER)))
        assert re.fullmatch(r"\* .*261 x 255 x 249, .*rate: python cpu", legend)

    def test_have_no_legend_where_there_are_none(self) -> None:
        rows = row("numpy", shape=SMALLER), row("mkl", shape=SMALLER)
        assert not [each for each in footnotes(report_of(*rows, baseline_at=SMALLER)) if "*" in each]


class TestVariantsAreNamed:
    ROWS = (("cpp", "lecture"), ("cpp", "tuned"), ("openmp", "tuned"))

    def test_in_legends(self) -> None:
        report = report_of(*(row(*each) for each in self.ROWS))
        (noisy,) = [each for each in footnotes(report) if each.startswith("undecided")]
        assert noisy.endswith(": cpp cpu lecture, cpp cpu tuned, openmp cpu")

    def test_in_notes_on_some_of_them(self) -> None:
        rows = [row(*each) for each in self.ROWS]
        rows[0] = replace(rows[0], note="older than its source")
        (remark,) = remarks.notes(report_of(*rows))
        assert remark.subject == "cpp cpu lecture"
        rows[1] = replace(rows[1], note=rows[0].note)
        (remark,) = remarks.notes(report_of(*rows))
        assert remark.subject == "cpp cpu", "all of its variants"


class TestNotesOnSeveralRows:
    def test_stand_once(self) -> None:
        report = report_of(row("cpp", note=f"older than its source; {FEW}"), row("openmp", note=FEW))
        assert [(each.subject, each.text) for each in remarks.notes(report)] == [
            ("all timed rows", FEW),
            ("cpp cpu", "older than its source"),
        ]

    def test_name_the_rows_if_others_were_timed(self) -> None:
        report = report_of(row("cpp", note=FEW), row("openmp", note=FEW), row("numpy"))
        (remark,) = remarks.notes(report)
        assert (remark.subject, remark.text) == ("several", f"{FEW}: cpp cpu, openmp cpu")


@pytest.mark.parametrize(
    ("communication", "by"), [(None, "the device's events"), (Communication(1e-4, [0], 0.0), "the clocks of the ranks")]
)
def test_it_is_told_what_timed_a_kernel(communication: Communication | None, by: str) -> None:
    kernel, clock = (Duration(seconds, None, None, seconds, 3) for seconds in (1e-3, 2e-3))
    timed = row("one", communication=communication, seconds=Seconds(kernel=kernel, clock=clock))
    expected = f"timed by {by}; by the host's clock, with launch and wait: one cpu 2.00 ms"
    assert expected in footnotes(report_of(timed))


def test_what_a_process_wrote_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Open MPI begins lines with a name in brackets. Taken for markup, they were lost, or no table was printed."""
    words = "it last wrote: [node1:1234] *** Process received signal ***; cannot open [/usr/lib/x.so] :b:"
    made = report_of(row("numpy"), row("mpi", status="crashed", reason=words, seconds=None, rate=None))
    with console.output() as out:
        print_report(made, out)
    assert words in " ".join(capsys.readouterr().out.split())
    assert words in " ".join(html.unescape(re.sub("<[^>]*>", "", _notebook.as_html(made))).split())


def test_a_kernel_without_an_operation_or_an_element_is_read(tmp_path: Path) -> None:
    """A transpose has no operation, and an array of no element no byte either; neither has more than 64 bits."""
    path = tmp_path / "results.json"
    for shape in ({"m": 3, "n": 5}, {"m": 0, "n": 5}):
        moved = with_work(Row("transpose", "numpy", "cpu", "tuned", "float32", shape, "ok"))
        report = Report("now", "0", {}, {}, [moved])
        path.write_text(report.to_json())
        assert Report.read(path) == report
        assert moved.work is not None
        report.rows = [replace(moved, work=replace(moved.work, bytes=2**63))]
        path.write_text(report.to_json())
        with pytest.raises(WrongRequest):
            Report.read(path)


def test_a_notebook_shows_what_was_set_for_it_and_else_the_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    report = report_of(row("numpy"))
    monkeypatch.setattr(ShownInNotebooks, "as_text", lambda shown: f"{len(shown.rows)} row")
    report._repr_pretty_(SimpleNamespace(text=said.append), False)
    assert said == [str(report)] == ["1 row"]
    monkeypatch.setattr(ShownInNotebooks, "as_html", None)
    assert report._repr_html_() is None
    monkeypatch.setattr(ShownInNotebooks, "as_html", lambda shown: f"<b>{len(shown.rows)}</b>")
    assert report._repr_html_() == "<b>1</b>"


def test_only_line_feeds_end_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with console.output() as out:
        out.print(Text("one\u2028still one  \ntwo"))
    assert capsys.readouterr().out == "one\u2028still one\ntwo\n"
