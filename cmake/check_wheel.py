"""check_wheel.py WHEEL...: say what keeps a wheel of this clone from running on a machine without a compiler.

Prints a line for each fault, and ends with 1 where there is one. It needs `readelf`, which comes with the compiler.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

CLONE = Path(__file__).parent.parent
COMPILED = "py_backends/_compiled"
FROM_ENVIRONMENT = {"sycl_compiler": "libsycl.so.", "stdpar": "libtbb.so."}
"""By module, the library that another wheel brings."""
TO_ENVIRONMENT = "$ORIGIN/../../../.."
"""From lib/pythonX.Y/site-packages/py_backends/_compiled to lib, where wheels put their libraries."""
EVERYWHERE = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|ld-linux-[\w-]+)\.so\.\d+")
"""The libraries that every Linux has."""
_ADDED = re.compile(
    rf"{COMPILED}/([^/]+\.so|build\.[^/]+\.json|headers/.+)|py_backends\.libs/[^/]+|py_backends-[^/]+\.dist-info/.+"
)
HEADERS = {f"{COMPILED}/headers/{name}" for name in ("NOTICE", "c++/algorithm", "c/stdlib.h")}
"""Some of those that SYCL kernels are compiled with."""
_ENTRY = re.compile(r"\((NEEDED|RPATH|RUNPATH)\)[^\[]*\[(.*)\]")


def expected() -> set[str]:
    """What the package has besides extension modules: Python, stubs, kernels and templates."""
    places = {
        "py_backends": CLONE / "py_backends",
        **{f"py_backends/{each}": CLONE / each for each in ("kernels", "cpp_ext")},
    }
    return {
        f"{place}/{path.relative_to(folder).as_posix()}"
        for place, folder in places.items()
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix not in (".pyc", ".so", ".toml")
        and path.name != "goals.py"
        and not path.match("_compiled/build.*.json")
    }


def faults(wheel: Path) -> list[str]:
    """What is wrong with the wheel, a sentence each."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
            files = {name for name in archive.namelist() if not name.endswith("/")}
        return [*_names(wheel), *_contents(files), *_modules(wheel, Path(folder), files)]


def _names(wheel: Path) -> list[str]:
    """Its name has the package's version, and a tag that says for which systems it is."""
    source = (CLONE / "py_backends" / "__init__.py").read_text(encoding="utf-8")
    version = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    _, of_wheel, *_, platform = wheel.name.removesuffix(".whl").split("-")
    found = []
    if [of_wheel] != version:
        found.append(f"its version is {of_wheel}, and py_backends says {', '.join(version)}")
    if not platform.startswith("manylinux"):
        found.append(f"its tag is {platform}: it has not been repaired")
    return found


def _contents(files: set[str]) -> list[str]:
    """It has the files of the package, and no others but those that builds and repairs add."""
    wanted = expected()
    if any(name.startswith(f"{COMPILED}/sycl_compiler.") and _is_module(name) for name in files):
        wanted |= HEADERS
    missing = [f"{name} is missing" for name in sorted(wanted - files)]
    return missing + [f"{name} does not belong in it" for name in sorted(files - wanted) if not _ADDED.fullmatch(name)]


def _modules(wheel: Path, folder: Path, files: set[str]) -> list[str]:
    """Every stub has its module, and every module finds its libraries."""
    found = []
    modules = {PurePosixPath(name).name.split(".")[0]: folder / name for name in files if _is_module(name)}
    records = [folder / name for name in files if re.fullmatch(rf"{COMPILED}/build\.[^/]+\.json", name)]
    if len(records) != 1:
        return [f"it has {len(records)} records of a build"]
    left_out = json.loads(records[0].read_text(encoding="utf-8"))["left_out"]
    everything = wheel.name.endswith("_x86_64.whl")
    for stub in sorted((CLONE / COMPILED).glob("*.pyi")):
        if stub.stem not in modules and stub.stem != "kernel_module" and (everything or stub.stem not in left_out):
            reason = left_out.get(stub.stem, {"reason": "it was not built"})["reason"]
            found.append(f"the module {stub.stem} is missing: {reason}")
    for name, module in sorted(modules.items()):
        found += [f"the module {name} {fault}" for fault in _libraries(name, module, folder)]
    for name in sorted(name for name in files if name.startswith("py_backends.libs/")):
        if not re.fullmatch(r"lib[gi]?omp.*\.so.*", PurePosixPath(name).name):
            found.append(f"{name} is a library that it should not bring")
    return found


def _is_module(name: str) -> bool:
    return name.startswith(f"{COMPILED}/") and name.endswith(".so")


def _libraries(name: str, module: Path, folder: Path) -> list[str]:
    """What is wrong with the libraries that a module needs, and with where it looks for them."""
    needed, paths = _dynamic_section(module)
    strange = [path for path in paths if not path.startswith("$ORIGIN")]
    found = [f"looks for libraries in {path}, a folder of one machine" for path in strange]
    brought = FROM_ENVIRONMENT.get(name)
    if brought and TO_ENVIRONMENT not in paths:
        found.append(f"does not look for {brought}* in the environment's lib, {TO_ENVIRONMENT}")
    places = [Path(path.replace("$ORIGIN", str(module.parent))).resolve() for path in paths]
    for library in needed:
        if EVERYWHERE.fullmatch(library) or (brought and library.startswith(brought)):
            continue
        if not any(place.is_relative_to(folder.resolve()) and (place / library).exists() for place in places):
            found.append(f"needs {library}, which is not in the wheel")
    return found


def _dynamic_section(module: Path) -> tuple[list[str], list[str]]:
    """The names of the libraries that a module needs, and the folders where it looks for them first."""
    command = ["readelf", "--dynamic", "--wide", str(module)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"LC_ALL": "C"})
    entries = _ENTRY.findall(run.stdout)
    paths = [path for kind, value in entries if kind != "NEEDED" for path in value.split(":") if path]
    return [value for kind, value in entries if kind == "NEEDED"], paths


def main() -> None:
    """Check each wheel, and print what is wrong."""
    wheels = [Path(name) for name in sys.argv[1:]]
    if not wheels:
        sys.exit("usage: check_wheel.py WHEEL...")
    failed = False
    for wheel in wheels:
        found = faults(wheel)
        failed = failed or bool(found)
        for fault in found:
            print(f"{wheel.name}: {fault}")
        if not found:
            print(f"{wheel.name}: checked, nothing is missing")
    sys.exit(failed)


if __name__ == "__main__":
    main()
