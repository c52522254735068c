"""The process in which a backend is tried: `python -m py_backends.functions.trial_child BACKEND BYTES`.

BYTES: the address space that the caller has in use, of which this process takes as much, as the same limit holds.

It ends with 0 whatever Python raises: only a library that ends it is of interest.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import resource
import sys
from pathlib import Path

import numpy as np

from py_backends import registry
from py_backends.functions import call
from py_backends.functions.dispatch import dtypes_taken
from py_backends.functions.targets import targets_of
from py_backends.system.lifetimes import end_with_parent

_SIZE = 256
"""Of each dimension. Smaller arrays are computed without threads."""


def main() -> None:
    """Try it."""
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # nobody needs the memory of a process that is meant to fail
    backend, in_use = sys.argv[1:]
    with contextlib.suppress(Exception):  # the caller meets it too, and says so
        ours = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * mmap.PAGESIZE
        if int(in_use) > ours:
            _ = mmap.mmap(-1, int(in_use) - ours, prot=0)
        _compute(backend)
    os._exit(0)  # whatever a library does at the interpreter's end


def _compute(backend: str) -> None:
    """Compute on every target that a caller may use: the kernel of the most dimensions, which takes most of all."""
    kernels = [registry.problem(name) for name in registry.kernel_names() if registry.kernel_files(name, backend)]
    problem = max(kernels, key=lambda each: len(each.dimensions))
    for target in targets_of(backend):
        if target.available and not target.emulated:
            asked = (problem.name, backend, None, target.name, None, type(None))
            sizes, dtype = problem.equal_sizes(_SIZE), dtypes_taken(asked)[0]
            every = zip(problem.inputs, problem.shapes(sizes), problem.array_dtypes(dtype), strict=False)
            inputs = [np.zeros(shape, of_array) for _, shape, of_array in every]
            call.call(problem, asked, inputs, None, None, tuple(problem.numbers.values()))


if __name__ == "__main__":
    main()
