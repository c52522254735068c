"""Prints the table of docs/patterns.md: which source each kernel has in each model: python docs/patterns.py"""

from __future__ import annotations

import sys

from py_backends import registry

ORDER = ("vecadd", "dot", "transpose", "heat", "matmul", "nbody", "attention")
"""Of the kernels: from every element for itself to two products in one pass."""


def table() -> str:
    """A line for each model. A cell says how many sources there are."""
    kernels = sorted(registry.kernel_names(), key=lambda name: (*ORDER, name).index(name))
    lines = [f"| model | {' | '.join(f'`{kernel}`' for kernel in kernels)} |", "| --- " * (len(kernels) + 1) + "|"]
    for backend in registry.backend_names():
        cells = " | ".join(str(len(registry.kernel_texts(kernel, backend)) or "-") for kernel in kernels)
        lines.append(f"| `{backend}` | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")
