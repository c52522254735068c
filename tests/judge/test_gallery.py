"""Sources that people wrote in their own ways: right ones hold, whatever their order and call, and cheats are refused.

`right.toml` has those in all models, with those that are refused today although they are right, and why. `cheats.toml`
has what makes other checks say right. Each is judged as a user's file is. All together take most of an hour.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from judged import Answer, judge

from py_backends import registry

_BY_SUFFIX = {".cl": "opencl", ".cu": "cuda"}


def sources(name: str) -> list[Any]:
    """Every source of a file of them, as a parameter with the marker of its backend."""
    found = tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))["source"]
    return [pytest.param(each, id=each["file"], marks=_marks(each)) for each in found]


def _marks(source: dict[str, str]) -> list[pytest.MarkDecorator]:
    named = next((each for each in source["options"].split() if each in registry.backend_names()), None)
    backend = named or _BY_SUFFIX[Path(source["file"]).suffix]
    marks = [pytest.mark.nightly, getattr(pytest.mark, backend)]
    if "refused" in source:
        marks.append(pytest.mark.xfail(reason=source["refused"]))
    return marks


def judged(source: dict[str, str], folder: Path) -> Answer:
    options = source["options"].split()
    return judge(folder, source["file"], source["text"], *options, kernel=source["kernel"], dtype=None)


@pytest.mark.parametrize("source", sources("right.toml"))
def test_what_is_right_in_another_way_is_right(source: dict[str, str], tmp_path: Path) -> None:
    answer = judged(source, tmp_path)
    assert (answer.code, answer.judgement["right"]) == (0, True), answer.run


@pytest.mark.parametrize("source", sources("cheats.toml"))
def test_a_cheat_is_refused(source: dict[str, Any], tmp_path: Path) -> None:
    """Or a remark says what computes; or its times show that it gained nothing: `at_least` so many seconds."""
    answer = judged(source, tmp_path)
    if source.get("expected") == "remark":
        assert answer.code == 0, answer.run
        assert any("a library computes" in remark for remark in answer.judgement["remarks"])
    elif answer.code == 0:
        (row,) = (row for row in answer.rows if row["variant"] == "judged")
        assert row["seconds"]["kernel"]["minimum"] >= source["at_least"]
    else:
        assert answer.code == 1 or "--budget" in answer.run.stderr, answer.run
