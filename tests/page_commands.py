"""The commands that pages print, in blocks of shell and between backticks; and how a test runs one.

A page in another language has the commands of its page in English: `test_languages` holds it to that.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from commands import CLONE, Finished, environment, run_python
from markdown_pages import inline, pages, tokens

from py_backends import __main__ as command_line
from py_backends.ranks.engine import engine
from py_backends.system import interpreter, surroundings

OURS = set(command_line._parser()[1])
"""The commands of `py-backends`. Running text may leave out the program's name."""
_PROGRAMS = "py-backends|python|pytest|make|pip|mpirun|srun|cmake|docker|jupyter|sudo"
_PROGRAM = re.compile(rf"(?:\w+=\S+ )*(?:\.(?:venv/bin|ci)/[\w-]+|{_PROGRAMS})\s+\S")
_HERE_DOCUMENT = re.compile(r"(<<'(\w+)')\n.*?^\2$", re.DOTALL | re.MULTILINE)
NOT_RUN = {
    r".*((?<!<)\b([A-Z]{2,}|P|T)\b(?!=)|\bA,B\b).*|.* \.\.\.": "a word in capitals stands for what a reader puts there",
    r".* \./mine\b.*": "a folder of the reader's own",
    r"py-backends (race|judge( \w+)?)( [\w.]+)?( --size \d+)?": "a file of the reader's own",
    r"py-backends (compare --json|diff --fail-on slower)": "an option is meant, and no file is named",
    r"(\w+=\S+ )*(make|cmake|python -m benchmarks)\b.*": "builds, tests or measures the clone, as .ci/ does",
    r"(\w+=\S+ )*\.ci/.*": "takes a system of its own: .ci/run and .ci/nightly start it",
    r"python -m tests\.(mutants|net|instruments)\b.*": "takes minutes to hours: .ci/nightly does",
    r"diff -r before after": "reads what a command of .ci/nightly wrote",
    r"(python -m )?pytest -m .*": "runs the clone's own tests, as this one",
    r"pre-commit .*|\. \.venv/bin/activate|(module load|export) .*": "changes the shell or the clone of its user",
    r"sudo .*|pip .*|jupyter .*|docker .*": "changes the system, or needs what it does not have",
    r"python -m py_backends": "another name of the program",
    r"srun .*|.* --launcher 'srun .*|mpirun --bind-to core": "needs Slurm, or begins another command",
    r"python docs/(draw|notebook|blocks|lists)\.py": "writes pages of the clone: the tests of documents hold what "
    "stands there to what it would write",
    r".*(einsum|axpy|smooth|kernel_steps|kernel_folders|own_code).*": "needs the examples, which their own tests run",
}  # fmt: skip
"""Commands, by a pattern for the whole of them, and why no test runs them here."""

GIVEN = {"old.json": "new.json"}
"""Files that a page takes for there, and those that stand for them: an earlier run may be the same one."""
BUSY = "too few were undisturbed"
"""What a table says of a machine whose CPUs others used all the time."""
WRITES = ("--json", "--csv", "--markdown", "--svg", "--png")
"""Options that name a file to write, and change nothing else."""


RECIPES = CLONE / "docs" / "develop"
"""Pages for developers. What they alone print needs the files that a recipe has one write, or changes the clone."""


def all_commands() -> list[str]:
    """Each command of the English pages once, in their order."""
    return _commands(pages())


def _commands(some: Iterable[Path]) -> list[str]:
    texts = [page.read_text(encoding="utf-8") for page in some if not page.name.endswith(".ko.md")]
    return list(dict.fromkeys(command for text in texts for command in of(text)))


def of(text: str) -> Iterator[str]:
    """The commands of a page, each written in one way: without comments, and without the folder of the environment."""
    for token in tokens(text):
        if token.type in ("fence", "code_block") and (token.info == "sh" or _is_shell(token.info, token.content)):
            yield from map(_written, _lines(token.content))
    for token in inline(text):
        if token.type == "code_inline":
            first, _, others = token.content.partition(" ")
            if others and (first in OURS or _PROGRAM.match(token.content)):
                yield _written(shlex.split(f"py-backends {token.content}" if first in OURS else token.content))


def _is_shell(language: str, block: str) -> bool:
    return not language and bool(_PROGRAM.match(block))


def _lines(block: str) -> Iterator[list[str]]:
    """The words of its commands. A quotation may end in a later line."""
    line = ""
    for part in _HERE_DOCUMENT.sub(r"\1", block).splitlines():
        line += part
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # no closing quotation
            line += "\n"
            continue
        line = ""
        if words:
            yield words


def _written(words: Sequence[str]) -> str:
    line = re.sub(r"^((?:\w+=\S+ )*)\.venv/bin/", r"\1", shlex.join(words))
    return re.sub(r"^python -m py_backends ", "py-backends ", line)


def parted(command: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The words of a command without the files that it writes; these, by their options."""
    words, files = shlex.split(command), {}
    for option in WRITES:
        if option in words[:-1]:
            at = words.index(option)
            files[option] = words[at + 1]
            del words[at : at + 2]
    return tuple(words), files


def covering(commands: Collection[str]) -> list[str]:
    """Without those that another one covers: the same command, which writes more files."""
    kept: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {}
    for command, (words, files) in sorted(((each, parted(each)) for each in commands), key=lambda it: -len(it[1][1])):
        if not any(words == other and files.items() <= more.items() for other, more in kept.values()):
            kept[command] = words, files
    return [each for each in commands if each in kept]


def written(command: str) -> list[str]:
    """The files that a command writes."""
    words, files = parted(command)
    return [*files.values(), *(after for word, after in pairwise(words) if word in ("-o", ">"))]


def read(command: str) -> list[str]:
    """The results that a command reads."""
    return [name for name in re.findall(r"[\w/-]+\.json\b", command) if name not in written(command)]


def sequences(commands: Sequence[str]) -> list[list[str]]:
    """Commands, each followed by those that read what it has written first."""
    found = [[command] for command in commands]
    for reader in commands:
        writers = [each for each in found if each[0] != reader and set(read(reader)) & set(written(each[0]))]
        if writers:
            found.remove([reader])
            writers[0].append(reader)
    return found


QUICK_SHAPES = {"matmul": "matmul=48", "vecadd": "vecadd=1009", "axpy": "axpy=1009"}
QUICK_SIZES = {"matmul": "16,32,64", "vecadd": "1024,4096,16384", "axpy": "1024,4096,16384"}
OF_MATMUL = ("formats", "ladder", "scaling", "sweep")
"""Commands that take this kernel, where none is named."""
QUICK_BUDGETS = {"ladder": "5", "scaling": "8", "sweep": "12"}
"""Seconds, where 2 would leave out rows on a busy machine: these show nothing of one row alone."""
QUICK_LATENCY = """
import sys
sys.path.insert(0, "docs")
import latency
latency.SIZES, latency.STEPS = latency.SIZES[:2], 1000
latency.main()
"""


def quick(command: str) -> str:
    """The command with a short budget, small sizes and two backends, where it takes such options.

    One that draws a picture also writes the other files of its kind, for tests that look at these.
    """
    words = shlex.split(command)
    if command == "python docs/latency.py":
        return shlex.join(["python", "-c", QUICK_LATENCY])
    if words[0] == "pytest":
        return f"{command} --kind shapes"
    if "py-backends" not in words:
        return command
    name = words[words.index("py-backends") + 1]
    known = _options_of(name)
    if "--budget" not in known:
        return command
    named = {word.partition("=")[0] for word in words}
    every = set() if "--kernel" in words else {"matmul"} if name in OF_MATMUL else {"matmul", "vecadd"}
    kernels = [kernel for kernel in QUICK_SHAPES if kernel in named | every]
    many = "--backend" not in words or words[words.index("--backend") + 1].count(",") > 1
    words = _without(words, "--budget", "--shape", "--from", "--to", *(["--backend"] if many else []))
    if kernels == ["matmul"] and name in OF_MATMUL:
        words = _without(words, "--kernel")
    if many and "--backend" in known:
        words += ["--backend", "numpy,openmp"]
    if "--sizes" in known:
        words += ["--sizes", QUICK_SIZES[kernels[0]]]
    elif "--shape" in known:
        words += [word for kernel in kernels for word in ("--shape", QUICK_SHAPES[kernel])]
    if "--svg" in words:
        words += [word for kind in ("json", "png") if f"--{kind}" not in words for word in _file(name, kind)]
    return shlex.join([*words, "--budget", QUICK_BUDGETS.get(name, "2")])


def _file(name: str, kind: str) -> tuple[str, str]:
    return f"--{kind}", f"{name}.{kind}"


def _options_of(name: str) -> set[str]:
    return {option for action in command_line._parser()[1][name]._actions for option in action.option_strings}


def _without(words: list[str], *options: str) -> list[str]:
    """The words without these options and their values."""
    dropped = {at + after for at, word in enumerate(words) if word in options for after in (0, 1)}
    return [word for at, word in enumerate(words) if at not in dropped]


def to_run() -> list[str]:
    """The commands of the pages for users that are not listed."""
    found = _commands(page for page in pages() if page.parent != RECIPES)
    return [each for each in found if not any(re.fullmatch(kind, each, re.DOTALL) for kind in NOT_RUN)]


@cache
def quick_sequences() -> list[list[str]]:
    """What a quick run runs: without the first programs, which one test runs for all."""
    timed = [quick(each) for each in to_run() if not re.fullmatch(r"py-backends hello \w+", each)]
    return sequences(covering(dict.fromkeys(timed)))


@dataclass(frozen=True)
class Ran:
    """What became of commands that were run one after the other: each with its end, and the folder with their files."""

    ended: dict[str, Finished]
    folder: Path

    @property
    def first(self) -> Finished:
        return next(iter(self.ended.values()))


PageRuns = Callable[[str], Ran]
"""Runs a command by how it begins, in a quick run."""


def run_all(sequence: Iterable[str], folder: Path, *, longest: float | None = None) -> Ran:
    """Run commands in a folder, in which a page's own files are there."""
    (folder / "docs").symlink_to(CLONE / "docs")
    ended = {}
    for command in sequence:
        for name in read(command):
            if not (folder / name).exists():
                (folder / name).write_bytes((folder / GIVEN[name]).read_bytes())
        ended[command] = run(command, folder, longest=longest)
        if ended[command].returncode == 1 and BUSY in ended[command].stdout:  # what is right may look impossible then
            ended[command] = run(command, folder, longest=longest)
    return Ran(ended, folder)


def run(command: str, folder: Path, *, longest: float | None = None) -> Finished:
    """Run a command in a folder: where `longest` seconds are given in a process of its own, else those of ours here."""
    line, _, file = command.partition(" '>' ")
    words = shlex.split(line)
    if words[0] == "mpirun":
        ended = _run_ranks(int(words[2]), words[4:], folder)
    elif words[0] != "py-backends":
        ended = run_python(*(words[1:] if words[0] == "python" else ["-m", *words]), cwd=folder, longest=longest or 120)
    elif longest is not None:
        ended = run_python("-m", "py_backends", *words[1:], cwd=folder, longest=longest)
    else:
        ended = _run_here(words[1:], folder)
    if file:
        (folder / file).write_text(ended.stdout, encoding="utf-8")
    return ended


def _run_here(words: Sequence[str], folder: Path) -> Finished:
    """A process would take as long to start as many commands take."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with contextlib.chdir(folder), contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            code = command_line.main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(list(words), code, out, err)


def _run_ranks(ranks: int, words: Sequence[str], folder: Path) -> Finished:
    """By the mpirun that is found here, of a wheel for instance."""
    found = engine()
    command = [*found.command(ranks), *interpreter.command("py_backends", *words)]
    env = environment() | surroundings.environment(found.environment)
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False)
