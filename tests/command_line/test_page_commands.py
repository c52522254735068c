"""Every command that a page prints is run, and does what such a command does; or it is listed with the reason why not.

`make test` runs those that start no worker and draw no page: `compare` and `doctor` are run elsewhere. The quick run of
the others takes 2 seconds to time, small sizes and two backends, and one of several commands that do the same. The
nightly runs all as they are printed.
"""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from commands import Finished
from page_commands import (
    NOT_RUN,
    OURS,
    PageRuns,
    all_commands,
    covering,
    of,
    quick_sequences,
    run_all,
    sequences,
    to_run,
    written,
)
from test_diff import columns

from py_backends import __main__ as command_line
from py_backends import registry

RIGHT = r"^\d+ rows? ran(, \d+ of them emulated)?, and (is|all are) right\.$"
"""The last line of a comparison."""
PRINTS = {
    "choose": r"^  use  +\w+ [\w-]+ \w+",
    "compare": RIGHT,
    "diff": r"^  backend .*\bverdict\b",
    "doctor": r"^ *numpy +cpu ",
    "formats": r"within the error bound of its own format$",
    "hello": r"^1\. ",
    "hello openmp": r"-O2 -fopenmp openmp\.cpp -o openmp && \./openmp$[^$]*0 \+ 1 \+ \.\.\. \+ 9 = 45$",
    "hello openmp --source": r"\A// OpenMP",
    "ladder": r"rung by rung$",
    "ladder --steps": r"step by step$",
    "predict": r"^network .* latency, .* GB/s",
    "report": r"\A\Z",
    "roofline": r" bound by$",
    "scaling": r"strong: the same work on more threads$",
    "show": r"\A(==> \w+  kernels/.*\d lines <==$|(// |# |\"{3})(vecadd|matmul)\b)",
    "show matmul --steps": r"^CPU, step 1: ",
    "show matmul --backend cpp,openmp --diff": r"\A--- kernels/matmul/\w+/cpp\.cpp$",
    "sweep": r" (size from which on|by size)$",
    "timeline": r"medians of the phases of one call$",
    "pytest": r"^=+ .*\d passed\b",
    "mpirun": RIGHT,
    "python": r"^matmul numpy cpu \{|ns a load$",
}
"""What a command prints in some line, by how it begins; the longest beginning counts."""
BEGINS = {".json": b"{", ".svg": b"<svg ", ".png": b"\x89PNG", ".html": b"<html", ".cpp": b"// "}
"""What stands in a file that a command writes."""


def beginning(command: str) -> str:
    """How the line of PRINTS begins that is for a command."""
    line = command.removeprefix("py-backends ")
    return max((words for words in PRINTS if f"{line} ".startswith(f"{words} ")), key=len)


def of_sequences(found: list[list[str]], *marks: pytest.MarkDecorator) -> list[Any]:
    """As parameters; what one backend alone is for has its marker.

    Of each command of ours that starts no worker and draws no page one is not slow. Those that do what an earlier one
    does, with the same backends, are for the nightly run.
    """
    parameters = []
    kinds: set[tuple[str, ...]] = set()
    for sequence in found:
        words = shlex.split(sequence[0])
        backends = [word for before, word in pairwise(words) if before == "--backend"]
        named = {"mpi"} if words[0] == "mpirun" else set()
        if "show" not in words:
            named.update(backends)
        marked = [getattr(pytest.mark, name) for name in named & set(registry.backend_names())]
        kind = beginning(sequence[0]), *backends
        marked += [pytest.mark.nightly] * (kind in kinds)
        known = {other.split()[0] for other, *_ in kinds}
        takes_long = words[0] != "py-backends" or "--budget" in words or words[1] in {"doctor", "report"}
        marked += [pytest.mark.slow] * (takes_long or kind[0].split()[0] in known)
        kinds.add(kind)
        parameters.append(pytest.param(sequence, marks=[*marks, *marked], id=" ".join(sequence[0].split())[:100]))
    return parameters


def check(command: str, ended: Finished, folder: Path) -> None:
    said = ended.stdout + ended.stderr
    assert ended.returncode == 0, said
    assert "Traceback" not in said
    assert re.search(PRINTS[beginning(command)], ended.stdout, re.MULTILINE), said
    for name in written(command):
        assert BEGINS[Path(name).suffix] in (folder / name).read_bytes()


@pytest.mark.parametrize("sequence", of_sequences(quick_sequences()))
def test_does_what_such_a_command_does(sequence: list[str], page_runs: PageRuns) -> None:
    ran = page_runs(sequence[0])
    for command, ended in ran.ended.items():
        check(command, ended, ran.folder)
        assert ended.stderr == "" or not command.startswith("py-backends ")


@pytest.mark.slow
@pytest.mark.numpy
@pytest.mark.openmp
def test_a_run_against_itself_is_no_slower(page_runs: PageRuns) -> None:
    ended = page_runs("py-backends compare --kernel matmul --json new.json").ended
    shown = ended["py-backends diff old.json new.json --fail-on slower"]
    assert columns(shown, "openmp")[-1] in {"same", "unclear"}
    assert columns(shown, "openmp")[9] == "1.00"


@pytest.mark.parametrize("sequence", of_sequences(sequences(covering(to_run())), pytest.mark.nightly))
def test_as_it_is_printed(sequence: list[str], tmp_path: Path) -> None:
    for command, ended in run_all(sequence, tmp_path, longest=800).ended.items():
        check(command, ended, tmp_path)


@pytest.mark.parametrize("command", [each for each in to_run() if each.startswith("py-backends ")])
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
    for command in to_run():
        assert PRINTS[beginning(command)], command
    of_examples = [each for each in all_commands() if "examples/own_code/" in each]  # tests of race and judge run them
    assert {each.split()[1] for each in [*to_run(), *of_examples] if each.startswith("py-backends ")} == OURS


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
    both = "py-backends ladder --svg a.svg --json a.json", "py-backends ladder --json a.json --svg a.svg"
    assert covering(both) == [both[0]]
    writer, reader = "py-backends compare --json r.json", "py-backends report r.json -o page.html"
    assert sequences([reader, one, writer]) == [[one], [writer, reader]]
