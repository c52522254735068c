"""Runs the target amx of sycl, as serve.py says.

    run_sycl.py FOLDER

FOLDER has the sources, which may differ from those of the package.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from serve import serve

from py_backends import registry


def main(folder: Path) -> None:
    text = registry.kernel_texts("matmul", "sycl")["tuned"]
    serve(replace(text, path=folder / text.path.name), lambda threads: registry.backend("sycl").open("amx", threads))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
