"""Packages of plug-ins for tests: what is on Python's path and has metadata beside it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

BACKENDS, KERNELS = "py_backends", "py_backends.kernels"

BACKEND = """
    from dataclasses import dataclass
    import numpy as np
    from py_backends import contract

    @dataclass(frozen=True)
    class Strung(contract.Target):
        strings: int = 10

    class Backend(contract.Backend):
        def targets(self):
            return [Strung("abacus", device="wood", version="1")]

        def open(self, target, threads):
            return Device()

    class Device(contract.HostDevice):
        deterministic, cache_bytes = np.bool_(True), np.int64(2**20)

        def prepare(self, text, dtype):
            kernel = getattr(text.load(), text.kernel)
            return lambda buffers, sizes: kernel(*text.shaped(buffers, sizes), *sizes)
"""
PROBLEM = """
    import numpy as np
    from py_backends.contract import Problem, Reference

    class Subtraction(Problem):
        name = "{name}"
        dimensions = ("n",)
        rule = "bitwise"
        rate = "gbytes_per_second"
        in_place = True
        default_sizes = (10007,)

        def shapes(self, sizes):
            (n,) = sizes
            return (n,), (n,), (n,)

        def sizes(self, *inputs):
            if inputs[0].ndim != 1 or any(array.shape != inputs[0].shape for array in inputs):
                raise ValueError("it takes vectors of one length")
            return inputs[0].shape

        def reference(self, inputs):
            return Reference(inputs[0] - inputs[1])

        def flops(self, sizes):
            return sizes[0]

    PROBLEM = Subtraction()
"""
"""A kernel of two inputs, named by whoever writes it down."""


def kernel(name: str, operator: str = "-") -> str:
    """A text in Python, for any backend that takes NumPy's arrays."""
    return f"def {name}(a, b, c, n):\n    c[:] = a {operator} b\n"


def install(
    folder: Path, group: str, entries: Mapping[str, str], files: Mapping[str, str], package: str, version: str = "1.0"
) -> None:
    """Put a distribution into a folder that is on Python's path.

    entries: names of backends or kernels, and what they stand for.
    files: by their places in the folder; indentation that all lines share is taken away.
    """
    metadata = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    lines = [f"{name} = {value}" for name, value in entries.items()]
    texts = {
        metadata / "METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n",
        metadata / "entry_points.txt": "\n".join([f"[{group}]", *lines, ""]),
    } | {folder / name: dedent(text) for name, text in files.items()}
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
