"""The pages, docstrings and comments can be read once: sentences are short, and words are the field's.

`python tests/documents/test_prose.py` prints the longest and the median sentence of each page, and of each folder of
Python.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import shutil
import statistics
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import CLONE

pytestmark = pytest.mark.documents

LONGEST, MEDIAN = 30, 15
"""Words of a sentence."""
NO_PROSE = re.compile(
    r"^ *```[\s\S]*?^ *```$"  # a block of code
    r"|^(?:    .*\n)+"  # an indented one
    r"|<!--[\s\S]*?-->"
    r"|^ *\|.*$"  # a table
    r"|^#+ .*$"
    r"|!\[[^]]*\]\([^)]*\)"  # a picture
    r"|(?<=\])\([^)]*\)",  # where a link leads
    re.MULTILINE,
)
END = re.compile(r"(?<=[.?!])[)*\"]*\s+(?=[\W_]*[A-Z0-9]|[\W_]*`|\*\w)")
"""Of a sentence that has another after it; a colon and a semicolon end none."""
HOUSE_WORDS = {
    r"(?<!plain )(?<!as )\b(?:text|Text|texts|Texts)\b": "source",
    r"\b(?:a|each|every|one|per|this) turn\b": "iteration",
    r"\bturned\b": "transposed",
    r"\bstretch(?:es)?\b": "chunk",
    r"\byardsticks?\b": "reference library",
    r"\bg(?:o|oes|oing|one) on with\b": "resume",
    r"\bworth (?:its|their|the) while\b": "pays off",
    r"\bbelongs? into\b": "belongs in",
    r"\bin step\b": "in lockstep",
    r"\bend(?:s|ing)? in line\b": "right-aligned",
    r"\bothers (?:were at work|took)\b": "other processes",
}
"""What only this project would say, and what the field says."""
PARAMETER = re.compile(r"^[a-z_][\w, ]*: ")
"""The names with which an entry of a list of parameters begins."""
NO_COMMENT = re.compile(r"(?:noqa|type|fmt|ruff|pragma)\b.*")
"""Instructions to a tool, which stand before a second `#` if a comment follows."""


def pages() -> list[str]:
    """All in English that git knows but for the list of changes."""
    if not (git := shutil.which("git")):
        return []
    command = [git, "ls-files", "--cached", "--others", "--exclude-standard", "*.md", ":!*.ko.md"]
    run = subprocess.run(command, cwd=CLONE, capture_output=True, text=True, check=False)
    return sorted(set(run.stdout.split()) - {"CHANGELOG.md"})


def sentences(page: str) -> list[str]:
    """Of the paragraphs and lists of a page, without its code, tables and headings."""
    paragraphs = re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )", NO_PROSE.sub("", page))
    found = [" ".join(sentence.split()) for part in paragraphs for sentence in END.split(part)]
    return [sentence for sentence in found if length(sentence)]


def length(sentence: str) -> int:
    """Its words, numbers and names; a dash or a sign of multiplication is none."""
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


class Words(NamedTuple):
    """A docstring, or a comment of one or several lines, and where it begins."""

    file: str
    line: int
    text: str

    @property
    def sentences(self) -> list[str]:
        """Without examples, and with each entry of a list of parameters or items for itself."""
        prose = re.sub(r"\n\n(?:    .*\n?)+", "\n\n", self.text)
        parts = re.split(r"\n\s*\n|\n(?=- )|(?<=[.:])\n(?=[\w, ]+: )", prose)
        found = [" ".join(each.split()) for part in parts for each in END.split(part)]
        return [each for each in found if length(each)]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@cache
def python_files() -> list[str]:
    """All of the package."""
    return [path.relative_to(CLONE).as_posix() for path in sorted((CLONE / "py_backends").rglob("*.py"))]


@cache
def python_words(name: str) -> tuple[Words, ...]:
    return (*docstrings(name), *comments(name))


def docstrings(name: str) -> Iterator[Words]:
    """Of modules, classes, functions, and of names, below which they stand."""
    for node in ast.walk(ast.parse(read(name))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield Words(name, node.lineno, inspect.cleandoc(node.value.value))


def comments(name: str) -> Iterator[Words]:
    """Those of their own lines as one, if the lines follow one another."""
    tokens = tokenize.generate_tokens(io.StringIO(read(name)).readline)
    found = [each for each in tokens if each.type == tokenize.COMMENT]
    own = [each for each in found if each.line.lstrip().startswith("#")]
    for _, block in groupby(enumerate(own), key=lambda each: each[1].start[0] - each[0]):
        lines = [token for _, token in block]
        yield Words(name, lines[0].start[0], "\n".join(comment(each.string) for each in lines))
    for each in found:
        if not each.line.lstrip().startswith("#"):
            yield Words(name, each.start[0], comment(each.string))


def comment(line: str) -> str:
    parts = [part.strip() for part in re.split(r"\s*# ", f" {line}")]
    return " ".join(part for part in parts if not NO_COMMENT.match(part))


def read(name: str) -> str:
    return (CLONE / name).read_text(encoding="utf-8")


def without_code(page: str) -> str:
    return re.sub(r"^ *```[\s\S]*?^ *```$|^(?:    .*\n)+|`[^`]*`|<!--[\s\S]*?-->", "", page, flags=re.MULTILINE)


def test_there_are_pages() -> None:
    if not pages():
        pytest.skip("git is missing, which knows the clone's own files")
    assert {"README.md", "docs/walk.md", "docs/clusters.md"} <= set(pages())


@pytest.mark.parametrize("name", pages())
def test_sentences_are_short(name: str) -> None:
    found = sentences(read(name))
    long = [f"{length(each)}: {each}" for each in found if length(each) > LONGEST]
    assert not long, "\n".join(long)
    assert statistics.median(map(length, found)) <= MEDIAN


@pytest.mark.parametrize("name", pages())
def test_words_are_those_of_the_field(name: str) -> None:
    page = without_code(read(name))
    said = {better: re.findall(word, page, re.IGNORECASE) for word, better in HOUSE_WORDS.items()}
    assert not {better: words for better, words in said.items() if words}


def test_docstrings_and_comments_are_short() -> None:
    long = [
        f"{words}: {length(each)} words: {each}"
        for name in python_files()
        for words in python_words(name)
        for each in words.sentences
        if length(each) > LONGEST
    ]
    assert not long, "\n".join(long)


def test_docstrings_and_comments_use_the_words_of_the_field() -> None:
    any_of_them = re.compile("|".join(HOUSE_WORDS), re.IGNORECASE)
    wrong = [
        f"{words}: {found[0]!r}: {said}"
        for name in python_files()
        for words in python_words(name)
        for each in words.sentences
        if (found := any_of_them.search(said := without_code(PARAMETER.sub("", each))))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_readme_fits_two_screens() -> None:
    assert len(read("README.md").splitlines()) <= 100


def test_what_counts_as_a_sentence() -> None:
    prose = "One [two](a.md) three. Four: five; `six`.\n- Seven\n  eight\n"
    page = f"# Not this\n\n{prose}\n```sh\nnot this\n```\n| nor | this |\n"
    assert sentences(page) == ["One [two] three.", "Four: five; `six`.", "- Seven eight"]
    assert [length(each) for each in sentences(page)] == [3, 3, 2]


def test_what_counts_as_words_of_python(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        '"""One two. Three:\n\n    not = this\n\nfour: a value.\nfive: another.\n"""\n'
        '# Six\n# seven.\nx = "# not this"  # noqa: E501  # eight\n"""Nine."""\n'
    )
    found = {words.line: words.sentences for words in python_words(str(path))}
    assert found == {
        1: ["One two.", "Three:", "four: a value.", "five: another."],
        8: ["Six seven."],
        10: ["eight"],
        11: ["Nine."],
    }


if __name__ == "__main__":
    found = {name: sentences(read(name)) for name in pages()}
    for name in python_files():
        folder = name if name.count("/") == 1 else name.rpartition("/")[0]
        found.setdefault(folder, []).extend(each for words in python_words(name) for each in words.sentences)
    for name, some in found.items():
        lengths = [length(each) for each in some] or [0]
        sys.stdout.write(f"{max(lengths):4} {statistics.median(lengths):5} {len(lengths):5}  {name}\n")
