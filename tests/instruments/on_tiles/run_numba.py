"""Runs the target amx of numba_cpu, as serve.py says.

    run_numba.py FOLDER ASSEMBLY

FOLDER has the sources, which may differ from those of the package. ASSEMBLY is the file for what is compiled of
`multiply`, of all formats. Panels and blocks are so small that small matrices have several.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from serve import serve

from py_backends import registry
from py_backends.backend import numba_cpu

PART = "py_backends.kernels.matmul.tuned.numba_cpu_"
"""What the names of the sources' modules begin with."""


def imported(folder: Path, name: str) -> ModuleType:
    """A source as the module that the package has under its name."""
    specification = importlib.util.spec_from_file_location(PART + name, folder / f"numba_cpu_{name}.py")
    assert specification
    assert specification.loader
    sys.modules[PART + name] = module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def main(folder: Path, assembly: Path) -> None:
    imported(folder, "tiles")
    source = imported(folder, "amx")
    source.PANEL, source.BLOCK, source.FEW = 2**13, 2**14, 0.0
    text = registry.kernel_texts("matmul", "numba_cpu")["tuned"]
    serve(text, lambda threads: numba_cpu.Backend().open("amx", threads))
    assembly.write_text("\n".join(source.multiply.inspect_asm().values()))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
