"""The pages can be read once: sentences are short, and words are the field's.

`python tests/test_prose.py` prints the longest and the median sentence of each page.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys

import pytest
from commands import CLONE

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


def test_the_readme_fits_two_screens() -> None:
    assert len(read("README.md").splitlines()) <= 100


def test_what_counts_as_a_sentence() -> None:
    prose = "One [two](a.md) three. Four: five; `six`.\n- Seven\n  eight\n"
    page = f"# Not this\n\n{prose}\n```sh\nnot this\n```\n| nor | this |\n"
    assert sentences(page) == ["One [two] three.", "Four: five; `six`.", "- Seven eight"]
    assert [length(each) for each in sentences(page)] == [3, 3, 2]


if __name__ == "__main__":
    for name in pages():
        lengths = [length(each) for each in sentences(read(name))]
        sys.stdout.write(f"{max(lengths):4} {statistics.median(lengths):5} {len(lengths):5}  {name}\n")
