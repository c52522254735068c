"""Texts on a device whose instrument has to be there when a process starts: `python in_process.py REQUEST`.

Prints what is wrong with the results, as a list in JSON.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from py_backends import registry
from py_backends.contract import Device, Launch, Problem
from py_backends.kernel_text import KernelText
from py_backends.number_formats import number_format
from py_backends.results.check import check_output, reference_of

_LONGEST = 240.0


def run(
    text: KernelText,
    cases: Sequence[tuple[tuple[int, ...], str]],
    folder: Path,
    *,
    before: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    **facts: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a text at (sizes, dtype)s in a process of its own, by a command that comes `before` Python's.

    facts: what its language has to know, such as the form of OpenCL's texts.
    """
    request = folder / "request.json"
    asked = {"backend": text.backend, "kernel": text.kernel, "variant": text.variant, "cases": cases}
    asked |= {"path": str(text.path), "folder": str(folder), "facts": facts}
    request.write_text(json.dumps(asked), encoding="utf-8")
    paths = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.run(
        [*before, sys.executable, __file__, request],
        env={**os.environ, "PYTHONPATH": paths, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=_LONGEST,
        check=False,
    )


def _main(request: dict[str, Any]) -> list[str]:
    texts = registry.kernel_texts(request["kernel"], request["backend"])
    text = replace(texts[request["variant"]], path=Path(request["path"]))
    open_device, text_for = {"opencl": (_oclgrind, _of_lanes), "cuda": (_gpu, _as_it_is)}[request["backend"]]
    facts, folder = request["facts"], Path(request["folder"])
    device = open_device(facts)
    dtypes = {dtype for _, dtype in request["cases"]}
    launches = {dtype: device.prepare(text_for(text, dtype, folder, facts), np.dtype(dtype)) for dtype in dtypes}
    return list(_wrong(device, text.problem, launches, request["cases"]))


def _wrong(device: Device, problem: Problem, launches: Mapping[str, Launch], cases: Sequence[Any]) -> Iterator[str]:
    draw = np.random.default_rng(7)
    for sizes, dtype in cases:
        *shapes, shape = problem.shapes(sizes)
        inputs = [number_format(np.dtype(dtype)).draw(each, draw).astype(dtype) for each in shapes]
        output = problem.result_dtype(np.dtype(dtype))
        result = np.full(math.prod(shape), number_format(output).poison, output)
        buffers = [*(device.upload(array.ravel()) for array in inputs), device.allocate(result)]
        launches[dtype](buffers, sizes)
        device.wait()
        device.download(buffers[-1], result)
        for buffer in buffers:
            device.release(buffer)
        reason = check_output(result.reshape(shape), reference_of(problem, inputs, sizes), problem.rule).reason
        if reason:
            yield f"{sizes} {dtype}: {reason}"


def _oclgrind(facts: Mapping[str, Any]) -> Device:
    import pyopencl as cl

    from py_backends.backend.opencl import OpenClDevice

    found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    return OpenClDevice(next(each for each in found if "Oclgrind" in each.name), 1, facts["form"])


def _of_lanes(text: KernelText, dtype: str, folder: Path, facts: Mapping[str, Any]) -> KernelText:
    """The text with vector types of its own: Oclgrind says that its vectors have one lane, but computes with any."""
    from py_backends.backend.opencl import types

    path = folder / f"{dtype}_{facts['lanes']}.cl"
    vectors = types(text.problem, np.dtype(dtype), facts["lanes"])
    redefined = "".join(f"#undef {name}\n#define {name} {vectors[name]}\n" for name in ("V", "Sums", "WIDTH"))
    path.write_text(redefined + text.text, encoding="utf-8")
    return replace(text, path=path)


def _gpu(_: Mapping[str, Any]) -> Device:
    import cupy

    from py_backends.backend.cuda import Gpu

    cupy.cuda.set_allocator(None)  # of CuPy's pool an array gets more memory than it has elements
    return Gpu(0)


def _as_it_is(text: KernelText, *_: Any) -> KernelText:
    return text


if __name__ == "__main__":
    print(json.dumps(_main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
