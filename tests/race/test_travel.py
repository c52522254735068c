"""Functions travel to other processes by their module, by their file, or with their code."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import raced_functions

from py_backends.errors import WrongRequest
from py_backends.racing import travel

pytestmark = pytest.mark.stamped


@pytest.mark.parametrize(
    "function", [np.cumsum, np.add, raced_functions.ones], ids=["of NumPy", "a ufunc", "of a module"]
)
def test_what_a_module_has_is_found_there(function: travel.Function) -> None:
    assert travel.unpacked(travel.packed(function, "it")) is function


def test_others_bring_their_code() -> None:
    factor = 3
    for function in (lambda x: factor * x, partial(np.multiply, factor)):
        assert travel.unpacked(travel.packed(function, "it"))(2) == 6


def test_a_file_runs_once_and_finds_what_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "beside_it.py").write_text("two = 2\n")
    (tmp_path / "raced_file.py").write_text("import beside_it\n\ndef twice(x):\n    return beside_it.two * x\n")
    file = tmp_path / "raced_file.py"
    assert travel.unpacked(travel.packed_from(file, "twice"))(4) == 8
    assert travel.loaded(file) is travel.loaded(file)


def test_what_cannot_travel_is_one_line(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as opened, pytest.raises(WrongRequest, match="mine cannot travel") as raised:
        travel.packed(lambda x: opened.write(str(x)), "mine")
    assert "\n" not in str(raised.value)
