"""What a judged file includes or imports comes along. Nothing of this package or of its author changes for it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from judged import OF_JUDGE, judge, refused
from test_judge import BRIEFLY, IN_CPP, LECTURE
from written_files import made

from py_backends import registry
from py_backends.commands.judge import room
from py_backends.errors import WrongRequest

pytestmark = pytest.mark.stamped

OURS = "// ours\n"


@pytest.fixture
def header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a header that sources of this package include from two folders above."""
    folder = made(tmp_path / "installed", {"simd.hpp": OURS})
    monkeypatch.setattr(registry, "kernels_folder", lambda: folder)
    return folder / "simd.hpp"


def brought(file: Path) -> str:
    """What the header of that name holds in the room of a file."""
    with room.room("matmul", "judged") as folder:
        room.bring_included(file, folder)
        return (folder.parent.parent / "simd.hpp").read_text()


def test_a_strangers_header_of_the_same_name_is_read_and_ours_stays(header: Path, tmp_path: Path) -> None:
    files = {"simd.hpp": "// theirs\n", "matmul/mine/x.cpp": '#include "../../simd.hpp"\n'}
    theirs = made(tmp_path / "theirs", files)
    assert brought(theirs / "matmul" / "mine" / "x.cpp") == "// theirs\n"
    assert header.read_text() == OURS


def test_a_source_of_this_package_is_judged_in_its_place(header: Path) -> None:
    made(header.parent, {"matmul/lecture/x.cpp": '#include "../../simd.hpp"\n'})
    assert brought(header.parent / "matmul" / "lecture" / "x.cpp") == OURS
    assert header.read_text() == OURS


@OF_JUDGE
@pytest.mark.openmp
def test_a_copy_of_this_package_is_judged_with_its_headers(tmp_path: Path) -> None:
    headers = {each.name: each.read_text() for each in registry.kernels_folder().glob("*.hpp")}
    theirs = made(tmp_path, {"matmul/mine/.keep": "", **headers})
    text = (LECTURE / "openmp.cpp").read_text()
    answer = judge(theirs / "matmul" / "mine", "x.cpp", text, "--backend", "openmp", *BRIEFLY)
    assert (answer.code, answer.judgement["right"]) == (0, True), answer.run


def test_a_header_that_lies_farther_above_is_refused(tmp_path: Path) -> None:
    text = f'#include "../../../h.hpp"\n{IN_CPP}'
    folder = made(tmp_path, {"h.hpp": "", "x/y/z/mm.cpp": text}) / "x" / "y" / "z"
    said = refused("matmul", folder / "mm.cpp", "--backend", "openmp")
    assert "h.hpp" in said
    assert "two folders" in said


SIBLINGS = {
    "helper.py": "import other as of_theirs\ndef product(a, b): return of_theirs.product(a, b)\n",
    "other.py": "import helper\ndef product(a, b): return a @ b\n",
    "numpy.py": "raise ImportError('what is installed goes before')\n",
    "package/__init__.py": "",
    "package/part.py": "PART = 1\n",
}


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """Imports a Python file from a room, once it has come there with what lies beside it."""

    def import_with(text: str) -> object:
        theirs, here = made(tmp_path / "theirs", {**SIBLINGS, "mine.py": text}), tmp_path / "brought_here"
        here.mkdir()
        room.bring_module(theirs / "mine.py", here / "mine.py")
        assert (here / "mine.py").read_text().count("\n") == text.count("\n")
        monkeypatch.syspath_prepend(tmp_path)
        for name in [each for each in sys.modules if each.partition(".")[0] == here.name]:
            monkeypatch.delitem(sys.modules, name)
        return importlib.import_module(f"{here.name}.mine")

    return import_with


@pytest.mark.parametrize(
    "text",
    [
        "from helper import product\n",
        "from helper import (\n    product,\n)\n",
        "import os; import helper as h, sys\nproduct = h.product\n",
        "import numpy as np\ndef product(a, b):\n    import helper\n    return helper.product(np.asarray(a), b)\n",
        "from .helper import product\n",
        "from . import helper\nproduct = helper.product\n",
        "from package.part import PART\nimport package.part as part\nfrom helper import product\n",
    ],
)
def test_modules_beside_a_file_come_along(text: str, imported: Callable[[str], object]) -> None:
    import numpy as np

    product = vars(imported(text))["product"]
    assert product(np.eye(2), np.eye(2)).sum() == 2


def test_what_cannot_come_along_is_one_line(imported: Callable[[str], object]) -> None:
    with pytest.raises(WrongRequest, match="from package import part"):
        imported("import package.part\n")


@OF_JUDGE
@pytest.mark.numpy
def test_a_file_that_imports_its_neighbour_is_right(tmp_path: Path) -> None:
    made(tmp_path, {"helper.py": "def product(a, b): return a @ b\n"})
    text = "# py-backends: c = mm(a, b)\nfrom helper import product\ndef mm(a, b): return product(a, b)\n"
    answer = judge(tmp_path, "mine.py", text, "--backend", "numpy", *BRIEFLY)
    assert (answer.code, answer.judgement["right"]) == (0, True), answer.run
