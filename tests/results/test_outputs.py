"""Files that options name are checked before anything is measured; results are kept whatever becomes of the rest."""

from __future__ import annotations

import errno
import json
import os
import shlex
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from commands import Finished, run_command, run_here, run_python

from py_backends.__main__ import _command_parser
from py_backends.commands import _outputs, _run
from py_backends.commands._options import Parser
from py_backends.display import style
from py_backends.results.report import Report, Row
from py_backends.system import files
from py_backends.workers import probe

pytestmark = pytest.mark.stamped

ROW = Row("vecadd", "numpy", "cpu", "lecture", "float32", {"n": 1}, "ok")
REPORT = Report("now", "0", {}, {}, [ROW])

WITHOUT_ROOTS_RIGHTS = """
import ctypes, os, sys
for right in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH: by them root may read and write everything
    ctypes.CDLL(None).prctl(24, right, 0, 0, 0)  # PR_CAPBSET_DROP; others than root have no such rights to lose
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def run_without_rights(*arguments: str | Path) -> Finished:
    """Run the command line as somebody to whom permissions apply, root too."""
    return run_python("-c", WITHOUT_ROOTS_RIGHTS, "-m", "py_backends", *arguments)


def assert_refused(run: Finished, words: str) -> None:
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert words in line
    assert len(line) < 1000


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "given.json"
    path.write_text(REPORT.to_json())
    return path


def link_to_itself(folder: Path, ending: str) -> Path:
    (folder / f"loop{ending}").symlink_to(f"loop{ending}")
    return folder / f"loop{ending}"


def link_to_nowhere(folder: Path, ending: str) -> Path:
    (folder / f"link{ending}").symlink_to(folder / "missing" / f"file{ending}")
    return folder / f"link{ending}"


def pipe(folder: Path, ending: str) -> Path:
    os.mkfifo(folder / f"pipe{ending}")
    return folder / f"pipe{ending}"


def too_long_a_name(folder: Path, ending: str) -> Path:
    return folder / ("x" * 5000 + ending)


def below_a_file(folder: Path, ending: str) -> Path:
    (folder / "file").touch()
    return folder / "file" / f"name{ending}"


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (link_to_itself, "cannot be written to (Too many levels of symbolic links): name another file"),
        (link_to_nowhere, "there is no folder"),
        (pipe, "is a pipe or a device: name a file"),
        (too_long_a_name, "cannot be written to (File name too long): name another file"),
        (below_a_file, "there is no folder"),
    ],
)
@pytest.mark.parametrize(
    ("command", "ending"),
    [
        (["compare", "--json"], ".json"),
        (["compare", "--resume"], ".json"),
        (["timeline", "--svg"], ".svg"),
        (["doctor", "--json"], ".json"),
        (["report", "given.json", "-o"], ".html"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_what_cannot_be_written_is_refused_at_once(
    command: list[str], ending: str, bad: Callable[[Path, str], Path], words: str, results: Path
) -> None:
    arguments = [str(results) if word == results.name else word for word in command]
    assert_refused(run_here(*arguments, bad(results.parent, ending)), words)


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "--json", "new.json"],
        ["timeline", "--svg", "new.svg"],
        ["report", "{folder}/given.json", "-o", "new.html"],
        ["report", "given.json", "-o", "{folder}/new.html"],
    ],
    ids=" ".join,
)
def test_a_name_in_a_removed_folder_is_refused_at_once(command: list[str], results: Path) -> None:
    """The current folder of a terminal may be removed from another one."""
    arguments = [word.format(folder=results.parent) for word in command]
    begin = f"mkdir gone && cd gone && rmdir ../gone && exec {shlex.quote(sys.executable)} -m py_backends"
    finished = subprocess.run(
        ["/bin/sh", "-c", f'{begin} "$@"', "sh", *arguments],
        cwd=results.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert_refused(finished, "is a name in the current folder, which was removed: change to another")


@pytest.mark.parametrize("command", [["compare", "--json"], ["doctor", "--json"], ["report", "given.json", "-o"]])
@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (0o000, "closed/new cannot be written to (Permission denied): name another file"),
        (0o500, "closed cannot be written to (Permission denied): name a file elsewhere"),
    ],
)
def test_a_closed_folder_is_refused_at_once(command: list[str], mode: int, words: str, results: Path) -> None:
    folder = results.parent / "closed"
    folder.mkdir()
    folder.chmod(mode)
    arguments = [str(results) if word == results.name else word for word in command]
    try:
        assert_refused(run_without_rights(*arguments, folder / "new"), words)
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize(
    "command", [["diff", "FILE", "FILE"], ["report", "FILE", "-o", "-"], ["compare", "--resume", "FILE"]]
)
def test_results_that_are_closed_to_us_are_one_line(command: list[str], results: Path) -> None:
    results.chmod(0)
    arguments = [str(results) if word == "FILE" else word for word in command]
    assert_refused(run_without_rights(*arguments), "given.json cannot be read: Permission denied")


@pytest.mark.parametrize("command", [["diff", "/dev/zero", "/dev/zero"], ["report", "/dev/zero", "-o", "-"]])
def test_results_without_an_end_are_one_line(command: list[str]) -> None:
    assert_refused(run_here(*command), "/dev/zero cannot be read: it is a device, not a file")


@pytest.mark.parametrize("option", ["--json", "--csv", "--markdown"])
def test_no_file_has_the_name_of_standard_output(option: str, tmp_path: Path) -> None:
    """It wrote a file named -."""
    run = run_command("compare", option, "-", cwd=tmp_path)
    assert_refused(run, "- stands for standard output elsewhere, and is no file here: name another")
    assert not [*tmp_path.iterdir()]


def test_two_names_of_one_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    run = run_here("compare", "--json", tmp_path / "file", "--csv", tmp_path / "link")
    assert_refused(run, "--json and --csv name the same file: name one for each")


@pytest.mark.parametrize(
    ("option", "name"),
    [("--png", "a.x"), ("--png", "o.html"), ("--png", "x"), ("--png", "a.svg"), ("--svg", "x"), ("--svg", "a.png")],
)
@pytest.mark.parametrize("command", ["timeline", "roofline"])
def test_a_picture_has_the_ending_of_its_kind(command: str, option: str, name: str, tmp_path: Path) -> None:
    """Of another, matplotlib would say after the whole run that it cannot write it; of none, it would add one."""
    ending = option.replace("--", ".")
    run = run_here(command, option, tmp_path / name, "--json", tmp_path / "results.json")
    assert_refused(run, f"{option} takes a file name that ends in {ending}, not {tmp_path / name}")
    assert list(tmp_path.iterdir()) == []


def test_without_its_library_a_picture_is_refused_at_once(tmp_path: Path) -> None:
    blocked = "import sys; sys.modules['matplotlib'] = None; from py_backends.__main__ import main; sys.exit(main())"
    run = run_python("-c", blocked, "timeline", "--png", tmp_path / "a.png")
    assert_refused(run, "pictures need matplotlib")


def test_names_that_are_not_utf_8_are_escaped(tmp_path: Path) -> None:
    missing = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.json")
    assert_refused(run_here("diff", missing, missing), r"caf\xe9.json cannot be read")
    assert_refused(
        run_here("doctor", "--json", f"{missing}/file"), r"there is no folder " + str(tmp_path) + r"/caf\xe9.json"
    )


def options(folder: Path) -> Namespace:
    return Namespace(json=folder / "results.json", png=folder / "picture.png", svg=folder / "picture.svg")


@pytest.mark.parametrize("error", [style.NothingToDraw("too little"), ValueError("too large an image")])
def test_results_are_written_though_nothing_can_be_drawn(
    error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def draw(_: Report) -> NoReturn:
        raise error

    assert not _outputs.write_view(REPORT, draw, options(tmp_path))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f": {error}")
    assert json.loads((tmp_path / "results.json").read_text())["rows"]


def test_a_picture_that_cannot_be_written_costs_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The results before it are there, and the other picture too."""
    (tmp_path / "picture.png").mkdir()
    assert not _outputs.write_view(REPORT, lambda _: style.new()[0], options(tmp_path))
    (line,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path / "picture.png") in line
    assert line.endswith(os.strerror(errno.EISDIR))
    assert json.loads((tmp_path / "results.json").read_text())["rows"]
    assert "<svg" in (tmp_path / "picture.svg").read_text()


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a disk that becomes full at the end: no file whose name begins with `full` can be written."""
    replace = os.replace

    def fail(temporary: Path, path: Path) -> None:
        if Path(path).name.startswith("full"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(temporary, path)

    monkeypatch.setattr(files.os, "replace", fail)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        *(f"compare {options}" for options in ("--json full", "--csv full --json a", "--json a --markdown full")),
        *("choose --json full", "doctor --json full", "timeline --json full", "report given.json -o full"),
    ],
)
def test_a_file_that_was_not_written_is_exit_code_1(
    line: str, full: Path, results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other files are there, and the tables are printed."""
    monkeypatch.chdir(full)
    for runs in "compared", "run_planned":
        monkeypatch.setattr(_run, runs, lambda *_: REPORT)
    monkeypatch.setattr(probe, "backends", list)
    command = line.partition(" ")[0]
    for path, code in ("full", 1), ("written", 0):
        parser = Parser()
        _command_parser(command, parser.add_subparsers())
        options = parser.parse_args(shlex.split(line.replace("full", path)))
        assert options.run(options) == code
        said, complaint = capsys.readouterr()
        assert bool(said) == (command != "report")
        assert complaint.count("\n") == code
        assert (f" {path} " in complaint, os.strerror(errno.ENOSPC) in complaint) == (bool(code), bool(code))
        assert (full / path).exists() == (not code)
        assert (full / "a").exists() == (" a" in line)
    assert results.exists()


def test_the_case_of_an_ending_does_not_matter(tmp_path: Path) -> None:
    figure, _ = style.new()
    style.save(figure, tmp_path / "A.PNG")
    style.save(figure, tmp_path / "A.SVG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["A.PNG", "A.SVG"]
    assert (tmp_path / "A.PNG").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "A.SVG").read_text().startswith("<?xml")
