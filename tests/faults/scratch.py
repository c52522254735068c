"""Plants faults where programs of their own find them: in a scratch clone, or in packages of plug-ins."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
CLONE = HERE.parents[1]


def backends(clone: Path, faults: Iterable[str], kernels: Iterable[str] = ("vecadd",)) -> None:
    """Give a clone a backend for every fault: two files each, and nothing else to edit."""
    every = list(kernels)
    for fault in faults:
        shutil.copy(HERE / "backend.py", clone / "py_backends" / "backend" / f"{fault}.py")
        for kernel in every:
            lecture = clone / "kernels" / kernel / "lecture"
            shutil.copy(lecture / "numpy.py", lecture / f"{fault}.py")


def on_ranks(clone: Path, faults: Iterable[str], kernel: str) -> None:
    """Give a clone a variant of a kernel on ranks for every fault."""
    for fault in faults:
        folder = clone / "kernels" / kernel / fault
        folder.mkdir()
        shutil.copy(HERE / "ranks.py", folder / "mpi.py")


def plugin(
    backend: str,
    faults: Sequence[str],
    kernels: Iterable[str],
    variant: str = "lecture",
    dtypes: Sequence[str] = ("float32", "float64"),
) -> Mapping[str, str]:
    """The files of a package that has one backend, with a target for every fault."""
    files = {f"plugin_{backend}/__init__.py": f"import wrong\nBackend = wrong.backend({list(faults)}, {dtypes})\n"}
    for kernel in kernels:
        source = (CLONE / "kernels" / kernel / "lecture" / "numpy.py").read_text(encoding="utf-8")
        files[f"plugin_{backend}/kernels/{kernel}/{variant}/{backend}.py"] = source
    return {**files, "wrong.py": (HERE / "backend.py").read_text(encoding="utf-8")}
