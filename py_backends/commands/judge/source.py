"""Makes one file of anybody's a source of a kernel: as it is if it has this project's form, else behind a wrapper."""

from __future__ import annotations

import re
import shutil
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from py_backends import folders, registry
from py_backends.commands.judge import call, casts, proposal, room, wrappers, wrappers_in_python
from py_backends.commands.judge.call import Call
from py_backends.commands.judge.host_code import without_quotes
from py_backends.commands.judge.tuners import LeftOut
from py_backends.contract import KernelText, Problem
from py_backends.errors import WrongRequest
from py_backends.source_head import declarations, files_of
from py_backends.wording import listed

VARIANT = "judged"
_OTHER_SUFFIXES = {".cuh": ".cu", ".cc": ".cpp", ".cxx": ".cpp", ".hpp": ".cpp", ".h": ".cpp"}
"""What files are called elsewhere, by the suffix that sources have here."""
THEIR_MODULE = "_theirs"
"""What a file of Python is called beside its wrapper."""
_CALLED = re.compile(r"\b[A-Za-z_]\w*(?=\s*\()")
"""The names of functions, where they are defined or called."""
_SIZED_BY_LAUNCH = re.compile(r"\bextern\s[^;(){}]*__shared__|\b__shared__\s+extern\b")


@dataclass(frozen=True)
class Given:
    """What a user gives: a file for a kernel, and how it is called where that is said beside it."""

    kernel: str
    file: Path
    backend: str
    said: str | None = None

    @property
    def suffix(self) -> str:
        """The suffix of sources of its kind."""
        return suffix_of(self.file)

    @property
    def call(self) -> str | None:
        """How it is called, by the option or its comment; None where nothing says it."""
        return self.said or call.said_in(self.file.read_text(encoding="utf-8", errors="replace"))


def suffix_of(file: Path) -> str:
    """The suffix that sources like this file have here."""
    return _OTHER_SUFFIXES.get(file.suffix, file.suffix)


def checked(kernel: str, file: Path, backend: str | None, said: str | None) -> Given:
    """What is given, once its model is clear. Raises WrongRequest, with one line, where it is not."""
    suffixes = _suffixes()
    _check_is_kernel(kernel, file, set().union(*suffixes.values()))
    name = registry.kernel_named(kernel)
    registry.problem(name)  # unknown, or broken: it says why
    if not file.is_file():
        raise WrongRequest(f"{file} is no file")
    if backend is not None:
        registry.known_backend(backend)
    if file.suffix == ".c":
        raise WrongRequest(f"{file} is in C, and compiled as C++: name it .cpp, and write __restrict__ for restrict")
    having = [each for each, of_model in suffixes.items() if suffix_of(file) in of_model]
    if not having:
        every = sorted(set().union(*suffixes.values()))
        raise WrongRequest(f"{file} is in no known model: sources end in {listed(every)}")
    if backend is None and len(having) > 1:
        to_do = f"name one by --backend, of {listed(having)}{_and_a_call(name, file, said)}"
        raise WrongRequest(f"{file} may be of several models: {to_do}")
    if backend is not None and backend not in having:
        raise WrongRequest(f"{backend} takes {listed(sorted(suffixes[backend]) or ['no sources'])}, not {file}")
    return Given(name, file, backend or having[0], said)


def _check_is_kernel(kernel: str, file: Path, suffixes: Container[str]) -> None:
    """Raise WrongRequest where a file is given in the place of the kernel, or a folder that holds none."""
    path = Path(kernel)
    if path.is_file() or (suffix_of(path) in suffixes and not path.is_dir()):
        raise WrongRequest(f"{kernel} is a file: the kernel comes first, as in  judge {file} {kernel}")
    if folders.is_path(kernel) and path.is_dir() and not (path / "problem.py").is_file():
        here = f"name one that is here, {listed(registry.kernel_names(), 'or')}"
        raise WrongRequest(f"{kernel} is no kernel, since it has no problem.py: {here}; or write a problem.py")


def _and_a_call(kernel: str, file: Path, said: str | None) -> str:
    """What to do beside naming a model: the line that a file lacks, if it is not in this project's form."""
    text, problem = file.read_text(encoding="utf-8", errors="replace"), registry.problem(kernel)
    mark = call.mark_of(file)
    if said or call.said_in(text) or next(call.parameters(text, kernel, mark=mark), None):
        return ""
    return f"; and {proposal.to_do(text, problem, None, mark)}"


def _suffixes() -> dict[str, set[str]]:
    """By backend, the suffixes of its sources."""
    return {
        backend: {
            path.suffix
            for kernel in registry.kernel_names()
            for path, _ in registry.kernel_files(kernel, backend).values()
        }
        for backend in registry.backend_names()
    }


class Added(NamedTuple):
    """A file as a source of its kernel.

    says_formats: whether it says its formats. Else it may be right in some alone.
    """

    text: KernelText
    says_formats: bool


@contextmanager
def added(given: Given) -> Iterator[Added]:
    """Within, the file is the source of its kernel and model that has the variant `judged`.

    Raises WrongRequest, with one line, where it is not clear how it is called.
    """
    with room.room(given.kernel, VARIANT) as folder:
        says_formats = _write(given, folder)
        with folders.known(folders.sources_at(folder, given.kernel, given.file.resolve())):
            yield Added(registry.kernel_texts(given.kernel, given.backend)[VARIANT], says_formats)


def _write(given: Given, folder: Path) -> bool:
    """Write the source into its folder, and beside it what it includes or imports. Returns whether it says formats."""
    text, problem = given.file.read_text(encoding="utf-8", errors="replace"), registry.problem(given.kernel)
    source = folder / f"{given.backend}{given.suffix}"
    everything = _bare(given)
    if given.suffix == ".cu" and _SIZED_BY_LAUNCH.search(everything):
        raise WrongRequest(f"{given.file} has shared memory of which the launch gives the size: give it a constant one")
    if is_in_our_form(given, text, problem):
        _bring(given, source)
        return "Formats" in _declared(text)
    called = _called(given, text, everything, problem)
    takes = wrappers.formats(called, everything, problem)
    mark = call.mark_of(given.file)
    head = wrappers.head(called, given.file.name, text, takes, problem, mark)
    if given.suffix != ".py":
        called = casts.with_casts(called, everything, problem, of_cpp=given.suffix == ".cpp")
    wrapper = head + _wrapped(given, called, text, problem, folder)
    source.write_text(wrapper, encoding="utf-8")
    return False


def _bare(given: Given) -> str:
    """The file and what it includes, without comments and strings."""
    every = (each.read_text(encoding="utf-8", errors="replace") for each in files_of(given.file))
    return "\n".join(call.without_comments(each, call.mark_of(given.file)) for each in every)


def _bring(given: Given, place: Path) -> None:
    """Copy the file to a place in a room, and beside it what it includes or imports."""
    if given.suffix == ".py":
        room.bring_module(given.file.resolve(), place)
        return
    room.bring_included(given.file.resolve(), place.parent)
    shutil.copy(given.file, place)


def _wrapped(given: Given, called: Call, text: str, problem: Problem, folder: Path) -> str:
    """The wrapper's code, by the language. What it includes or imports is copied beside it."""
    if given.suffix == ".py":
        _bring(given, folder / f"{THEIR_MODULE}.py")
        return wrappers_in_python.in_python(called, THEIR_MODULE, text, problem, given.backend)
    if given.suffix == ".cpp":
        _bring(given, folder / named_here(given.file))
        return wrappers.in_cpp(called, named_here(given.file), problem)
    room.bring_included(given.file.resolve(), folder)
    if given.suffix == ".cu":
        return wrappers.in_cuda(called, given.file.name, without_quotes(text, given.file.parent), problem)
    return wrappers.in_opencl(called, given.file.name, text, problem)


def named_here(file: Path) -> str:
    """What a file is called beside its wrapper in C++."""
    return f"their_{file.name}"


def is_in_our_form(given: Given, text: str, problem: Problem) -> bool:
    """Whether a file is a source as this project writes them, which needs no wrapper."""
    if given.said or call.said_in(text):
        return False
    if _declares_launch(text):
        return True
    if given.suffix == ".cpp" and not _is_template(text, given.kernel):
        return False
    wanted = [_without_outputs(each, problem) for each in (call.names(problem), *_names_in_model(given))]
    mark = call.mark_of(given.file)
    own = (_without_outputs(each, problem) for each in call.parameters(text, given.kernel, mark=mark))
    return not _is_launched(given) and any(each in wanted for each in own)


def _without_outputs(parameters: Sequence[str], problem: Problem) -> list[str]:
    """The names of parameters but for those of outputs, which no problem says."""
    first, outputs = len(problem.inputs), problem.outputs
    return [name.lower() if at < first or at >= first + outputs else "" for at, name in enumerate(parameters)]


def _is_template(text: str, function: str) -> bool:
    """Whether a source in C++ has a function as a template, which is made for each number format."""
    return re.search(rf"\btemplate\s*<[^;{{}}]*\b{function}\s*\(", call.without_comments(text)) is not None


def _names_in_model(given: Given) -> Iterator[tuple[str, ...]]:
    """The parameters that the model's own sources of the kernel have, such as those of ranks."""
    for text in registry.kernel_texts(given.kernel, given.backend).values():
        yield from call.parameters(text.text, given.kernel, mark=call.mark_of(text.path))


def _called(given: Given, text: str, everything: str, problem: Problem) -> Call:
    """How the file's function is called. Raises WrongRequest, with what to paste, where nothing says it."""
    if given.suffix == ".cpp" and _is_launched(given):
        raise WrongRequest(f"{given.backend} takes sources in this project's form alone: docs/write-a-kernel.md")
    said = given.said or call.said_in(text)
    mark = call.mark_of(given.file)
    if said is None:
        to_do = proposal.to_do(text, problem, given.backend, mark)
        raise WrongRequest(f"{given.file} does not say how {given.kernel} is called: {to_do}")
    bare = call.without_launch(said)
    found = call.parse(bare, problem)
    if not re.search(rf"\b{found.own_name}\b" + ("" if given.suffix == ".py" else r"\s*\("), everything):
        near = get_close_matches(found.name, _CALLED.findall(everything), 1)
        raise WrongRequest(f"{given.file} has no function {found.name}{f': did you mean {near[0]}?' if near else ''}")
    lacking = None if given.suffix == ".py" else call.undeduced(found, everything)
    left_out = LeftOut() if given.suffix != ".py" else LeftOut.of(text, found)
    if lacks := _what_tuners_lack(left_out, found):
        raise WrongRequest(f"{given.file}: {lacks}")
    if wrong := call.misfit(found, everything, mark, left_out=len(left_out.names)) or lacking:
        raise WrongRequest(f"{given.file}: {wrong}")
    if bare != said and found.work_items:
        raise WrongRequest(f"{given.file} has a launch twice: write  {mark} py-backends: {bare}")
    if _is_launched(given) and found.work_items is None:
        paste = proposal.with_launch(said, problem, given.backend, mark)
        raise WrongRequest(f"{given.file} does not say its launch: add it as in  {paste}")
    return found


def _what_tuners_lack(left_out: LeftOut, found: Call) -> str | None:
    """What a call has to say, since decorators of its function do not, with why; None where they say all."""
    if left_out.computed:
        to_do = f"which a wrapper does not know: give {listed(left_out.computed)} in the call"
        return f"heuristics compute constants from the arguments of a launch, {to_do}"
    if left_out.unknown:
        names = listed(left_out.unknown)
        return f"no configuration of its tuner gives {names}: give all constants in the call"
    if left_out.prepares and not found.cleared:
        return "its tuner prepares arrays, and launches are made without it: say in the call which begin as zeros"
    return None


def _is_launched(given: Given) -> bool:
    """Whether sources of the model declare their launch."""
    texts: Sequence[KernelText] = [
        text for kernel in registry.kernel_names() for text in registry.kernel_texts(kernel, given.backend).values()
    ]
    return any(_declares_launch(text.text) for text in texts if text.variant == "lecture")


def _declares_launch(text: str) -> bool:
    return any(name.startswith("Work items") for name in _declared(text))


def _declared(text: str) -> list[str]:
    """The names of what a source declares."""
    try:
        return [name for name, _ in declarations(text)]
    except ValueError:
        return []
