"""Texts on a device whose instrument has to be there when a process starts: `python in_process.py REQUEST`.

Prints what is wrong with the results, as a list in JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import launched
import numpy as np

from py_backends import registry
from py_backends.contract import Device
from py_backends.kernel_text import KernelText
from py_backends.results.spec import Sizes

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
    sizes_in: dict[str, list[Sizes]] = {}
    for sizes, dtype in request["cases"]:
        sizes_in.setdefault(dtype, []).append(tuple(sizes))
    wrong: list[str] = []
    for dtype, several in sizes_in.items():
        launch = device.prepare(text_for(text, dtype, folder, facts), np.dtype(dtype))
        found = launched.wrong(device, launch, text.problem, several, dtype, launched.alone)
        wrong += [f"{sizes} {dtype}: {reason}" for sizes, reason in found.items()]
    return wrong


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
    lines = text.text.splitlines(keepends=True)
    head = list(takewhile(lambda line: line.startswith("//"), lines))  # which declares the launch
    path.write_text("".join([*head, redefined, *lines[len(head) :]]), encoding="utf-8")
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
