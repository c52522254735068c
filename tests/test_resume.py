"""`compare --resume FILE` goes on with what is missing, keeps what is there, and refuses what it cannot go on with."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_command
from started import started_until

import py_backends
from py_backends import _discovery
from py_backends._contract import WrongRequest
from py_backends.harness import machine
from py_backends.harness.plan import Request
from py_backends.harness.results import Report, Rounds
from py_backends.harness.resume import _request, _sum


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
    assert f"nothing is missing in {path}" in again.stderr


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


def test_interrupted_once_more_nothing_is_lost(interrupted: Any, tmp_path: Path) -> None:
    path = saved(interrupted, tmp_path / "results.json")
    run = started_until("looking for backends", path, options=("compare", "--resume", str(path)))
    run.process.send_signal(signal.SIGINT)
    ended = run.end(path)
    assert ended.code == 130
    assert ended.results["rows"] == interrupted["rows"]
    assert ended.results["interrupted"] is True


def of_another_version(results: Any) -> None:
    results["package_version"] = "0.0.9"


def of_another_machine(results: Any) -> None:
    results["machine"]["cpu"] = "a slide rule"


def without_its_request(results: Any) -> None:
    del results["settings"]["request"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (of_another_version, "is of py-backends 0.0.9, and this is"),
        (of_another_machine, "is of another machine (a slide rule, and this is"),
        (without_its_request, "does not say what was asked for"),
    ],
)
def test_what_cannot_be_gone_on_with(
    change: Callable[[Any], None], words: str, interrupted: Any, tmp_path: Path
) -> None:
    results = copy_of(interrupted)
    change(results)
    path = saved(results, tmp_path / "results.json")
    before = path.read_text()
    run = run_command("compare", "--resume", path)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert words in run.stderr
    assert path.read_text() == before


@pytest.mark.parametrize("options", [["--kernel", "vecadd"], ["--seed=1"], ["--threads", "1", "--dtype", "all"]])
def test_the_file_says_what_was_asked_for(options: list[str], tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    run = run_command("compare", "--resume", path, *options)
    unfit = ", ".join(sorted(option.partition("=")[0] for option in options if option.startswith("--")))
    assert (run.returncode, run.stdout) == (2, "")
    assert f"--resume takes what was asked for from {path}: leave out {unfit}" in run.stderr


def test_what_is_no_such_file(tmp_path: Path) -> None:
    run = run_command("compare", "--resume", tmp_path / "none.json")
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "cannot be read" in run.stderr


def test_a_request_stands_in_the_results_as_it_was_made() -> None:
    """In plain values, whatever it was made of."""
    request = Request(("vecadd",), shapes={"vecadd": [(np.int64(9),), [10]]})
    settings = json.loads(json.dumps(request.settings()))
    again = Request(**{**settings, "shapes": {"vecadd": [tuple(sizes) for sizes in settings["shapes"]["vecadd"]]}})
    problem = _discovery.problem("vecadd")
    assert list(again.chosen_shapes(problem)) == list(request.chosen_shapes(problem)) == [(9,), (10,)]
    assert (again.kernels, again.backends, list(again.dtypes)) == (["vecadd"], None, ["float32"])


ALL_SETTINGS = {"seed": 1, "threads": 1, "budget_seconds": 1.0, "cache": "hot"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "does not say what was asked for"),
        (ALL_SETTINGS, "does not say what was asked for"),
        ({"request": Request().settings()}, "does not say what was asked for"),
        (ALL_SETTINGS | {"request": None}, "does not say what was asked for"),
        (ALL_SETTINGS | {"request": {}}, "does not say what was asked for"),
        (ALL_SETTINGS | {"request": {"shapes": []}}, "does not say what was asked for"),
        (ALL_SETTINGS | {"request": {"shapes": {"vecadd": 3}}}, "does not say what was asked for"),
        (ALL_SETTINGS | {"request": {"shapes": {}, "colour": "red"}}, "does not say what was asked for"),
        (ALL_SETTINGS | {"request": {"shapes": {}, "backends": ["gone"]}}, "unknown backend 'gone'"),
    ],
    ids=str,
)
def test_settings_that_somebody_changed_are_refused(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], words: str
) -> None:
    monkeypatch.setattr(machine, "describe", lambda: {"cpu": "this one"})
    old = Report("", py_backends.__version__, {"cpu": "this one"}, settings, interrupted=True)
    with pytest.raises(WrongRequest, match=words):
        _request(old, Path("results.json"))
    assert _request(Report(**vars(old) | {"settings": ALL_SETTINGS | {"request": Request().settings()}}), Path())


def test_rounds_of_both_count() -> None:
    one, other = Rounds(10, 8, {"steal": 2}), Rounds(5, 2, {"steal": 1, "others": 2})
    assert _sum(one, other) == Rounds(15, 10, {"steal": 3, "others": 2})
    assert _sum(None, other) == other
