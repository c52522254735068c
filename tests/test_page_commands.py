"""Every command that a page prints is run, and does what such a command does; or it is listed with the reason why not.

A quick run takes 2 seconds to time, small sizes and two backends. The nightly runs them as they are printed.
"""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from commands import CLONE, Finished
from conftest import nightly
from page_commands import OURS, all_commands, covering, of, read, run, sequences, written

from py_backends import __main__ as command_line
from py_backends import registry
from py_backends.harness import hello
from py_backends.harness.hello import Outcome

NOT_RUN = {
    r".*(\b[A-Z]{2,}\b|\bP\b|\bA,B\b|\bT\b).*|.* \.\.\.": "a word in capitals stands for what a reader puts there",
    r"py-backends (compare --json|diff --fail-on slower)": "an option is meant, and no file is named",
    r"(make|cmake|python -m benchmarks)\b.*": "builds, tests or measures the clone: .ci/run and .ci/nightly do",
    r"\.ci/.*": "takes a system of its own: .ci/run and .ci/nightly start it",
    r"python -m tests\.(mutants|net|instruments)\b.*": "takes minutes to hours: .ci/nightly does",
    r"diff -r before after": "reads what a command of .ci/nightly wrote",
    r"(python -m )?pytest -m .*": "runs the clone's own tests, as this one",
    r"pre-commit .*|\. \.venv/bin/activate|module load .*": "changes the shell or the clone of who works in it",
    r"sudo .*|pip .*|jupyter .*|docker .*": "changes the system, or needs what it does not have",
    r"python -m py_backends": "another name of the program",
    r"srun .*|.* --launcher 'srun .*|mpirun --bind-to core": "needs Slurm, or begins another command",
    r"python docs/(draw|notebook|blocks)\.py|python - '<<END'|rm table\.txt": "writes pages of the clone: test_walk, "
    "test_notebook and test_languages hold what stands there to what it would write",
    r".*\b(iterators|triad)\b.*": "needs the files that its recipe tells how to write",
    r".*(einsum|axpy).*": "needs the examples: test_examples installs and runs them",
}  # fmt: skip
"""Commands, by a pattern for the whole of them, and why no test runs them here."""

PRINTS = {
    "choose": r"^  use  +numpy|^  use  +openmp",
    "compare": r"^\d+ rows? ran, and (is|all are) right\.$",
    "diff": r"^  backend .*\bverdict\b",
    "doctor": r"^ *numpy +cpu ",
    "formats": r"within the error bound of its own format$",
    "hello": r"^1\. ",
    "hello openmp": r"0 \+ 1 \+ \.\.\. \+ 9 = 45$",
    "hello openmp --source": r"\A// OpenMP",
    "ladder": r"rung by rung$",
    "ladder --steps": r"step by step$",
    "report": r"\A\Z",
    "roofline": r" bound by$",
    "scaling": r"strong: the same work on more threads$",
    "show": r"\A==> \w+  kernels/.*\d lines <==$",
    "show matmul --steps": r"^CPU, step 1: ",
    "show matmul --backend cpp,openmp --diff": r"\A--- kernels/matmul/lecture/cpp\.cpp$",
    "sweep": r"\bfaster than\b|\bfastest\b",
    "timeline": r"medians of the phases of one call$",
    "pytest": r"^=+ .*\d passed\b",
    "mpirun": r"^\d+ rows? ran, and (is|all are) right\.$",
    "python -c": r"^matmul numpy cpu \{",
    "python docs/latency.py": r"ns a load$",
}
"""What a command prints in some line, by how it begins; the longest beginning counts."""
BEGINS = {".json": "{", ".svg": "<svg ", ".html": "<html", ".cpp": "// "}
"""What stands in a file that a command writes."""
GIVEN = {"old.json": "new.json", "results.json": "docs/results/roofline.json"}
"""Files that a page takes for there, and those that stand for them: an earlier run may be the same one."""

QUICK_SHAPES = {"matmul": "matmul=48", "vecadd": "vecadd=1009"}
QUICK_SIZES = {"matmul": "16,32,64", "vecadd": "1024,4096,16384"}
QUICK_LATENCY = """
import sys
sys.path.insert(0, "docs")
import latency
latency.SIZES, latency.STEPS = latency.SIZES[:2], 1000
latency.main()
"""


def reasons(command: str) -> list[str]:
    return [reason for pattern, reason in NOT_RUN.items() if re.fullmatch(pattern, command, re.DOTALL)]


def options_of(name: str) -> set[str]:
    return {option for action in command_line._parser()[1][name]._actions for option in action.option_strings}


def without(words: list[str], *options: str) -> list[str]:
    """The words without these options and their values."""
    dropped = {at + after for at, word in enumerate(words) if word in options for after in (0, 1)}
    return [word for at, word in enumerate(words) if at not in dropped]


def quick(command: str) -> str:
    """The command with a short budget, small sizes and two backends, where it takes such options."""
    words = shlex.split(command)
    if command == "python docs/latency.py":
        return shlex.join(["python", "-c", QUICK_LATENCY])
    if words[0] == "pytest":
        return f"{command} --kind shapes"
    if "py-backends" not in words:
        return command
    name = words[words.index("py-backends") + 1]
    known = options_of(name)
    if "--budget" not in known:
        return command
    kernels = [kernel for kernel in QUICK_SHAPES if kernel in words] or list(QUICK_SHAPES)
    backends = words[words.index("--backend") + 1] if "--backend" in words else "every,one,there,is"
    if name in ("ladder", "sweep"):
        kernels = [kernel for kernel in kernels if kernel == "matmul" or kernel in words]
    words = without(words, "--budget", "--shape", "--from", "--to")
    if "--backend" in known and backends.count(",") > 1:
        words = [*without(words, "--backend"), "--backend", "numpy,openmp"]
    if "--sizes" in known:
        words += ["--sizes", QUICK_SIZES[kernels[0]]]
    else:
        words += [word for kernel in kernels for word in ("--shape", QUICK_SHAPES[kernel])]
    return shlex.join([*words, "--budget", "2"])


RUN = [command for command in all_commands() if not reasons(command)]
QUICK = sequences(covering(dict.fromkeys(map(quick, RUN))))


def expected(command: str) -> str:
    line = command.removeprefix("py-backends ")
    beginnings = [words for words in PRINTS if f"{line} ".startswith(f"{words} ")]
    return PRINTS[max(beginnings, key=len)]


def of_sequences(found: list[list[str]]) -> list[Any]:
    """As parameters; what one backend alone is for has its marker."""
    parameters = []
    for sequence in found:
        words = shlex.split(sequence[0])
        named = {"mpi"} if words[0] == "mpirun" else set()
        for before, word in pairwise(words):
            if before == "hello" or (before == "--backend" and "," not in word and "show" not in words):
                named.add(word)
        marks = [getattr(pytest.mark, name) for name in named & set(registry.backend_names())]
        parameters.append(pytest.param(sequence, marks=marks, id=" ".join(sequence[0].split())[:100]))
    return parameters


def check(command: str, ended: Finished, folder: Path) -> None:
    said = ended.stdout + ended.stderr
    assert ended.returncode == 0, said
    assert "Traceback" not in said
    assert re.search(expected(command), ended.stdout, re.MULTILINE), said
    for name in written(command):
        assert BEGINS[Path(name).suffix] in (folder / name).read_text(encoding="utf-8")


def prepare(command: str, folder: Path) -> None:
    """Put what a command reads and nothing here has written into the folder."""
    for name in read(command):
        if not (folder / name).exists():
            (folder / name).write_bytes((folder / GIVEN[name]).read_bytes())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").symlink_to(CLONE / "docs")
    return tmp_path


@pytest.mark.parametrize("sequence", of_sequences(QUICK))
def test_does_what_such_a_command_does(
    sequence: list[str], folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sequence[0].startswith("py-backends hello "):  # the program is run, but once for all tests that look at it
        outcomes: dict[str, Outcome] = request.getfixturevalue("outcomes")
        monkeypatch.setattr(hello, "run", lambda program: outcomes[program.path.name])
    for command in sequence:
        prepare(command, folder)
        ended = run(command, folder)
        check(command, ended, folder)
        assert ended.stderr == "" or not command.startswith("py-backends ")


@pytest.mark.parametrize("sequence", [nightly(each) for each in sequences(covering(RUN))])
def test_as_it_is_printed(sequence: list[str], folder: Path) -> None:
    for command in sequence:
        prepare(command, folder)
        check(command, run(command, folder, longest=800), folder)


@pytest.mark.parametrize("command", [each for each in RUN if each.startswith("py-backends ")])
def test_parses_as_it_is_printed(command: str) -> None:
    words = shlex.split(command.partition(" '>' ")[0])[1:]
    options, unknown = command_line._parser()[0].parse_known_args(words)
    assert (options.command, unknown) == (words[0], [])


def test_what_is_not_run_stands_in_a_page() -> None:
    commands = all_commands()
    for pattern in NOT_RUN:
        assert [each for each in commands if re.fullmatch(pattern, each, re.DOTALL)], pattern


def test_what_is_run_is_known() -> None:
    """A program that nobody thought of is neither run nor listed."""
    for command in RUN:
        assert expected(command), command
    assert {each.split()[1] for each in RUN if each.startswith("py-backends ")} == OURS


def test_commands_are_found_wherever_they_stand() -> None:
    page = """
Text with `make it`, `py-backends ladder
--steps` and `compare --kernel matmul`, but `openmp` and `a compare` are none.

```sh
ONE=1 .venv/bin/python -m py_backends doctor   # it's there
python -c "
print('r.json')"
python - <<'END'
py-backends
END
```

    pytest --pyargs NAME

- in a list:

  ```sh
  srun -n 4 there
  ```
"""
    assert sorted(of(page)) == sorted(
        [
            "make it",
            "py-backends ladder --steps",
            "py-backends compare --kernel matmul",
            "ONE=1 python -m py_backends doctor",
            shlex.join(["python", "-c", "\nprint('r.json')"]),
            "python - '<<END'",
            "pytest --pyargs NAME",
            "srun -n 4 there",
        ]
    )


def test_a_command_that_writes_more_stands_for_one_that_writes_less() -> None:
    one, more, other = "py-backends ladder", "py-backends ladder --svg a.svg", "py-backends ladder --steps"
    assert covering([one, more, other]) == [more, other]
    assert covering([more, "py-backends ladder --json a.json"]) == [more, "py-backends ladder --json a.json"]
    writer, reader = "py-backends compare --json r.json", "py-backends report r.json -o page.html"
    assert sequences([reader, one, writer]) == [[one], [writer, reader]]
