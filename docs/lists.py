"""Writes the lists of models and kernels into the pages: python docs/lists.py

A list stands between the comments `<!-- NAME: docs/lists.py -->` and `<!-- end -->`. It is made of the files of the
backends, of the kernels and of their sources. Two pages describe all of them by hand: the table of `choose.md` has the
backends, and `patterns.md` has a section for each kernel. The lists have the kernels in the order of these sections.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from py_backends import registry
from py_backends.commands.judge import call
from py_backends.number_formats import FORMATS

CLONE = Path(__file__).parents[1]
LINE = 120
BLOCK = re.compile(
    r"^(?P<begin>(?P<indent> *)<!-- (?P<name>\w+): docs/lists\.py -->\n).*?^(?P<end> *<!-- end -->)$",
    re.DOTALL | re.MULTILINE,
)


def pages() -> list[Path]:
    """Every page that may have a list."""
    return sorted(page for where in ("*.md", "docs/*.md", "docs/develop/*.md") for page in CLONE.glob(where))


def written(page: Path) -> str:
    """A page with its lists as they should be. ValueError says where a backend or a kernel is not described."""

    def made(found: re.Match[str]) -> str:
        lines = textwrap.indent(LISTS[found["name"]](page), found["indent"])
        return f"{found['begin']}{lines}\n{found['end']}"

    return BLOCK.sub(made, page.read_text(encoding="utf-8"))


def backends() -> list[str]:
    """Those of the project, whatever plug-ins are installed."""
    found = [name for name in registry.backend_names() if registry.backend_plugin(name) is None]
    table = (CLONE / "docs" / "choose.md").read_text(encoding="utf-8")
    _check("docs/choose.md: the table of backends", re.findall(r"^\| [^|]+ \| `(\w+)` \|", table, re.MULTILINE), found)
    return found


def kernels(language: str = "") -> dict[str, str]:
    """Those of the project, each with what it shows, by the page of patterns in that language."""
    page = CLONE / "docs" / f"patterns{language}.md"
    sections = dict(re.findall(r"^## (\w+): (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE))
    found = [name for name in registry.kernel_names() if registry.kernel_plugin(name) is None]
    _check(f"docs/{page.name}: the sections", sections, found)
    return sections


def _check(where: str, described: Iterable[str], there: Iterable[str]) -> None:
    if wrong := sorted({*described} ^ {*there}):
        raise ValueError(f"{where} and the files differ in {', '.join(wrong)}")


def _models(_: Path) -> str:
    """The names of all backends."""
    return _wrapped(f"`{name}`" for name in backends())


def _patterns(page: Path) -> str:
    """The kernels, each with what it shows, in the language of the page."""
    language = ".ko" if page.name.endswith(".ko.md") else ""
    described = [f"`{kernel}` ({pattern})" for kernel, pattern in kernels(language).items()]
    middle = (len(described) + 1) // 2
    return _filled(". ".join(map(", ".join, (described[:middle], described[middle:]))))


def _sources(_: Path) -> str:
    """How many sources each kernel has in each model."""
    lines = []
    for backend in backends():
        counts = [str(len(registry.kernel_texts(kernel, backend)) or "-") for kernel in kernels()]
        lines.append([f"`{backend}`", *counts])
    return _table(["model", *(f"`{kernel}`" for kernel in kernels())], lines)


def _backends(_: Path) -> str:
    """What each backend is: the first paragraph of its file."""
    lines = []
    for name in backends():
        words = inspect.getdoc(importlib.import_module(f"py_backends.backend.{name}")) or ""
        lines.append([f"`{name}`", _first_paragraph(words)])
    return _table(["backend", "what it is"], lines)


def _kernels(_: Path) -> str:
    """What each kernel computes, by the first paragraph of its problem, and its sizes and arrays."""
    lines = []
    for name in kernels():
        problem = registry.problem(name)
        words = inspect.getdoc(sys.modules[type(problem).__module__]) or ""
        computes = _first_paragraph(words).removeprefix(f"{name}: ")
        shape = " x ".join(problem.parameters)
        lines.append([f"`{name}`", computes, f"`{shape}`", f"`{problem.signature}`"])
    return _table(["kernel", "what it computes", "shape", "arrays"], lines)


def _names(page: Path) -> str:
    """What a kernel's parameters are called, in the order of its sources, and the shapes of its arrays."""
    head = {
        False: ["kernel", "names, in the order of this project's sources", "shapes of its arrays"],
        True: ["커널", "이름, 이 프로젝트의 소스가 쓰는 순서로", "배열의 모양"],
    }[page.name.endswith(".ko.md")]
    lines = []
    for name in kernels():
        problem = registry.problem(name)
        names = call.names(problem)
        arrays = names[: len(names) - len(problem.parameters)]
        shapes = [f"[{shape.replace(',', ', ')}]" for shape in re.findall(r"\((.*?)\)", problem.signature)]
        *inputs, output = map("".join, zip(arrays, shapes, strict=True))
        lines.append([f"`{name}`", ", ".join(names), f"`{', '.join(inputs)} -> {output}`"])
    return _table(head, lines)


def _results(_: Path) -> str:
    """The format of each kernel's result, by that of its inputs."""
    problems = {name: registry.problem(name) for name in kernels()}
    lines = []
    for dtype in FORMATS:
        cells = [
            problem.result_dtype(np.dtype(dtype)).name if dtype in problem.dtypes else "-"
            for problem in problems.values()
        ]
        if any(cell != "-" for cell in cells):
            lines.append([f"`{dtype}`", *cells])
    return _table(["inputs", *(f"`{name}`" for name in problems)], lines)


def _wrapped(words: Iterable[str]) -> str:
    return _filled(", ".join(words))


def _filled(words: str) -> str:
    return textwrap.fill(words, LINE, break_long_words=False, break_on_hyphens=False)


def _first_paragraph(words: str) -> str:
    return " ".join(words.partition("\n\n")[0].split()).removesuffix(".")


def _table(head: list[str], lines: list[list[str]]) -> str:
    cells = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in line] for line in lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


LISTS: dict[str, Callable[[Path], str]] = {
    "models": _models,
    "patterns": _patterns,
    "sources": _sources,
    "backends": _backends,
    "kernels": _kernels,
    "names": _names,
    "results": _results,
}


def main() -> None:
    """Write the pages, or end with the line that says what is not described."""
    try:
        found = {page: written(page) for page in pages()}
    except ValueError as error:
        sys.exit(str(error))
    for page, text in found.items():
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
