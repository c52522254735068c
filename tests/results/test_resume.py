"""`compare --resume FILE` goes on with what is missing, keeps what is there, and refuses what it cannot go on with."""

from __future__ import annotations

import json
import math
import re
import signal
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_command, run_here
from conftest import after_a_change
from made_rows import with_work
from started import started_until

from py_backends import registry
from py_backends.errors import WrongRequest
from py_backends.harness.request import Request
from py_backends.harness.resume import _Asked, _asked, _combined, _sum
from py_backends.results.ratios import row_ratio
from py_backends.results.report import Ceiling, Duration, Rate, Report, Rounds, Row, Seconds

pytestmark = pytest.mark.stamped

OF_A_RUN = after_a_change("py_backends/harness/resume.py", "py_backends/commands")


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The results of a comparison that was interrupted in its rounds, as objects of JSON."""
    path = tmp_path_factory.mktemp("interrupted") / "results.json"
    run = started_until("round 3", path)
    run.process.send_signal(signal.SIGTERM)
    results = run.end(path).results
    assert [row["finished"] for row in results["rows"]] == [False, False]
    return results


def saved(results: Any, path: Path) -> Path:
    path.write_text(json.dumps(results))
    return path


def copy_of(results: Any) -> Any:
    return json.loads(json.dumps(results))


@OF_A_RUN
def test_what_is_missing_runs_and_the_rest_stays(interrupted: Any, tmp_path: Path) -> None:
    """The baseline is finished here, and runs along for the ratios of the other."""
    old = copy_of(interrupted)
    old["rows"][0]["finished"] = True
    path = saved(old, tmp_path / "results.json")
    run = run_command("compare", "--resume", path, "--budget", "2")
    assert (run.returncode, run.stderr) == (0, "")
    new = json.loads(path.read_text())
    kept, ran = new["rows"]
    assert kept == old["rows"][0]
    assert (ran["backend"], ran["status"], ran["finished"]) == ("python", "ok", True)
    assert ran["versus"]["baseline"] == "numpy"
    assert ran["seconds"]["kernel"] != old["rows"][1]["seconds"]["kernel"]
    assert new["interrupted"] is False
    assert new["created"] == old["created"]
    assert new["settings"]["seed"] == old["settings"]["seed"]
    assert [each["budget_seconds"] for each in new["settings"]["resumed"]] == [2]
    assert new["seconds_taken"] > old["seconds_taken"]
    again = run_command("compare", "--resume", path)
    assert again.returncode == 2
    assert f"missing in {path}" in again.stderr


@OF_A_RUN
def test_an_interruption_before_there_was_a_plan(interrupted: Any, tmp_path: Path) -> None:
    """No row yet, and all of them afterwards, in another file where one is named."""
    path, other = saved(interrupted | {"rows": []}, tmp_path / "results.json"), tmp_path / "other.json"
    before = path.read_text()
    run = run_command("compare", "--resume", path, "--json", other, "--budget", "2")
    assert (run.returncode, run.stderr) == (0, "")
    assert path.read_text() == before
    rows = json.loads(other.read_text())["rows"]
    assert [(row["backend"], row["shape"], row["finished"]) for row in rows] == [
        ("numpy", {"n": 509}, True),
        ("python", {"n": 509}, True),
    ]


@OF_A_RUN
def test_interrupted_once_more_nothing_is_lost(interrupted: Any, tmp_path: Path) -> None:
    path = saved(interrupted, tmp_path / "results.json")
    run = started_until("looking for backends", path, options=("compare", "--resume", str(path)))
    run.process.send_signal(signal.SIGINT)
    ended = run.end(path)
    assert ended.code == 130, ended.errors
    assert ended.results["rows"] == interrupted["rows"]
    assert ended.results["interrupted"] is True


def of_another_version(results: Any) -> None:
    results["package_version"] = "0.0.9"


def of_another_machine(results: Any) -> None:
    results["machine"]["cpu"] = "a slide rule"


def without_its_request(results: Any) -> None:
    del results["settings"]["request"]


def with_threads_as_text(results: Any) -> None:
    results["settings"]["threads"] = "2"


def with_no_threads(results: Any) -> None:
    results["settings"]["threads"] = 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (of_another_version, "was written by py-backends 0.0.9, but this is"),
        (of_another_machine, "was written on another machine (a slide rule, but this is"),
        (without_its_request, "does not say what was requested (settings: Object missing required field `request`)"),
        (with_threads_as_text, "does not say what was requested (settings.threads: Expected `int`, got `str`)"),
        (with_no_threads, "cannot be resumed: threads must be from 1 to 4096, not 0"),
    ],
)
def test_what_cannot_be_gone_on_with(
    change: Callable[[Any], None], words: str, interrupted: Any, tmp_path: Path
) -> None:
    results = copy_of(interrupted)
    change(results)
    path = saved(results, tmp_path / "results.json")
    before = path.read_text()
    run = run_here("compare", "--resume", path)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert words in run.stderr
    assert path.read_text() == before


@pytest.mark.parametrize("options", [["--kernel", "vecadd"], ["--seed=1"], ["--threads", "1", "--dtype", "all"]])
def test_the_file_says_what_was_asked_for(options: list[str], tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    run = run_here("compare", "--resume", path, *options)
    unfit = ", ".join(sorted(option.partition("=")[0] for option in options if option.startswith("--")))
    assert (run.returncode, run.stdout) == (2, "")
    assert re.search(rf"--resume .*{re.escape(str(path))}.* {unfit} ", run.stderr)


def test_what_is_no_such_file(tmp_path: Path) -> None:
    run = run_here("compare", "--resume", tmp_path / "none.json")
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "none.json" in run.stderr


def test_a_request_stands_in_the_results_as_it_was_made() -> None:
    """In plain values, whatever it was made of."""
    request = Request(("vecadd",), shapes={"vecadd": [(np.int64(9),), [10]]})
    settings = json.loads(json.dumps(request.settings()))
    again = Request(**{**settings, "shapes": {"vecadd": [tuple(sizes) for sizes in settings["shapes"]["vecadd"]]}})
    problem = registry.problem("vecadd")
    assert list(again.chosen_shapes(problem)) == list(request.chosen_shapes(problem)) == [(9,), (10,)]
    assert (again.kernels, again.backends, again.dtypes) == (("vecadd",), None, ("float32",))


ASKED = Request().settings()
SETTINGS = {"request": ASKED, "seed": 1, "threads": 1, "budget_seconds": 1.0, "cache": "hot"}


def asked(**changed: Any) -> dict[str, Any]:
    return {"request": ASKED | changed}


def test_a_file_is_read_for_all_that_a_request_writes() -> None:
    assert [field.name for field in fields(_Asked)] == list(ASKED)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        *(({name: ...}, f"settings: Object missing required field `{name}`") for name in SETTINGS),
        *(({"request": ASKED | {name: ...}}, f"settings.request: Object .* field `{name}`") for name in ASKED),
        *(
            ({name: wrong}, f"settings.{name}: Expected")
            for name in ("seed", "threads", "cache")
            for wrong in ([3], {})
        ),
        *((asked(**{name: 3}), rf"settings.request.{name}\S*: Expected") for name in ASKED),
        *((asked(**{name: [3]}), rf"settings.request.{name}\S*: Expected") for name in ASKED),
        *(({"request": wrong}, "settings.request") for wrong in (None, [], "x", 3)),
        ({"seed": "x"}, r"settings.seed\S*: Expected"),
        ({"seed": -1}, "seed must be from 0 to"),
        ({"threads": "2"}, r"settings.threads\S*: Expected"),
        ({"threads": True}, r"settings.threads\S*: Expected"),
        ({"threads": 1.5}, r"settings.threads\S*: Expected"),
        ({"threads": 0}, "threads must be from 1 to 4096, not 0"),
        ({"threads": 10**9}, "threads must be from 1 to 4096, not 1000000000"),
        ({"budget_seconds": "2"}, r"settings.budget_seconds\S*: Expected"),
        ({"budget_seconds": None}, r"settings.budget_seconds\S*: Expected"),
        ({"budget_seconds": 0}, "budget must be a number of seconds above 0"),
        ({"budget_seconds": math.inf}, "budget must be a number of seconds above 0"),
        ({"budget_seconds": 10**400}, "settings.budget_seconds"),
        ({"cache": "lukewarm"}, "cache must be hot or cold, not 'lukewarm'"),
        ({"resumed": 3}, r"settings.resumed\S*: Expected"),
        ({"resumed": [3]}, r"settings.resumed\S*: Expected"),
        (asked(shapes={"vecadd": 3}), r"settings.request.shapes\[...\]\S*: Expected"),
        (asked(shapes={"vecadd": [["x"]]}), r"settings.request.shapes\[...\]\S*: Expected"),
        (asked(shapes={"vecadd": [[10**15]]}), "n of vecadd must be from 0 to"),
        (asked(backends=["gone"]), "unknown backend 'gone'"),
        (asked(kernels="vecadd"), "settings.request.kernels: Expected"),
        (asked(dtypes={"float32": 1}), "settings.request.dtypes: Expected"),
        (asked(dtypes=[]), "settings.request.dtypes is empty"),
    ],
    ids=str,
)
def test_settings_that_somebody_changed_are_refused_by_name(changed: dict[str, Any], words: str) -> None:
    """Before a worker starts: each of these once ended in a traceback or ran for ever."""

    def without_dots(values: Any) -> Any:
        kept = {name: value for name, value in values.items() if value is not ...}
        return {name: without_dots(value) if isinstance(value, dict) else value for name, value in kept.items()}

    assert _asked(Report("", "", {}, SETTINGS), Path("results.json"), None, None)
    old = Report("", "", {}, without_dots(SETTINGS | changed))
    with pytest.raises(WrongRequest, match=f"^results.json .*({words})"):
        _asked(old, Path("results.json"), None, None)


def test_rounds_of_both_count() -> None:
    one, other = Rounds(10, 8, {"steal": 2}), Rounds(5, 2, {"steal": 1, "others": 2})
    assert _sum(one, other) == Rounds(15, 10, {"steal": 3, "others": 2})
    assert _sum(None, other) == other


RESUMED = {"command": None, "budget_seconds": 1.0}


def row_of(backend: str, variant: str, samples: list[float | None], *, finished: bool = True) -> Row:
    """A row with these samples."""
    kernel = (samples and samples[0]) or 1.0
    seconds, rate = Seconds(kernel=Duration(kernel, None, None, kernel, 1)), Rate(1 / kernel, 1.0)
    row = Row("vecadd", backend, "cpu", variant, "float32", {"n": 1}, "ok", seconds=seconds, rate=rate)
    return with_work(replace(row, finished=finished, kernel_seconds=samples, end_to_end_seconds=samples))


def report_of(*rows: Row, ceilings: list[Ceiling] | None = None) -> Report:
    return Report("", "", {}, RESUMED, list(rows), ceilings=ceilings or [])


def test_samples_of_two_runs_are_no_pairs() -> None:
    """The machine is ten times as slow in the second run, which ratios by number would take for the rows."""
    cut_off = row_of("cpp", "tuned", [], finished=False)
    old = report_of(row_of("numpy", "lecture", [2.0] * 8), row_of("avx", "lecture", [1.0] * 8), cut_off)
    new = report_of(
        row_of("numpy", "lecture", [20.0] * 9), row_of("cpp", "tuned", [5.0] * 9), row_of("cpp", "lecture", [10.0] * 9)
    )
    numpy, avx, tuned, lecture = _combined(old, new).rows
    assert (numpy.kernel_seconds, avx.kernel_seconds) == ([2.0] * 8, [1.0] * 8)
    assert tuned.kernel_seconds == tuned.end_to_end_seconds == [None] * 8 + [5.0] * 9
    assert row_ratio(avx, numpy).rounds == 8
    assert row_ratio(tuned, lecture).rounds == 9, "rows of the second run are paired"
    assert (row_ratio(tuned, avx).low, row_ratio(tuned, numpy).low) == (None, None)


def test_of_a_ceiling_that_both_runs_measured_the_newer_one_is_kept() -> None:
    first = Ceiling("cpu", "reads", "float32", "avx2", 2, 100, "gbytes_per_second", 9.0, 8.0, 10.0, [9.0, 8.0, 10.0])
    second = replace(first, rate=5.0, low=None, high=None, by_round=[5.0])
    other = replace(first, device="a GPU")
    both = _combined(report_of(ceilings=[first, other]), report_of(ceilings=[second]))
    assert both.ceilings == [other, replace(second, by_round=[None, None, None, 5.0])]
