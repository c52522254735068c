"""collect_headers.py FOLDER COMPILER FLAG...: copy the headers of C and C++ that SYCL kernels are compiled with.

The SYCL runtime compiles kernels where they run. It brings its own headers, and takes the standard ones from the
system. A machine without a compiler has none of those, so a wheel brings them, in FOLDER/c++ and FOLDER/c. They are
the headers that the building compiler reads for all of the standard library and SYCL. The compiler's own ones
(stddef.h, immintrin.h and the like) are left out, since the SYCL runtime has them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

EVERYTHING = "#include <bits/stdc++.h>\n#include <sycl/sycl.hpp>\n"
# With optimisation, C's headers read more files; with the later standard, C++'s do.
FORMS = (["-O2", "-std=c++17"], ["-O2", "-std=c++20"])
NOTICE = """\
Standard headers, unchanged, as the compiler that built this wheel has them. SYCL kernels are compiled with them.

c++   the GNU C++ library, GPL-3.0-or-later WITH GCC-exception-3.1
c     the GNU C library, LGPL-2.1-or-later, and headers of the Linux kernel, GPL-2.0 WITH Linux-syscall-note
"""


def run(command: list[str], source: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command in the C locale, and return its output. Ends with that output where the command fails."""
    environment = os.environ | {"LC_ALL": "C"}
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done


def folders(compiler: list[str]) -> dict[Path, str]:
    """Where the compiler looks for system headers, in its order, and whose each is: `c++`, `c`, or its own."""
    said = run([*compiler, "-E", "-v", "-x", "c++", "-"]).stderr
    found = re.search(r"^#include <\.\.\.>.*?$(.*?)^End of search list", said, re.MULTILINE | re.DOTALL)
    assert found is not None, said
    owners = {}
    for line in found[1].split("\n"):
        folder = Path(os.path.normpath(line.strip() or "nowhere"))
        if folder.is_dir():
            itself = (folder / "stddef.h").exists() and (folder / "immintrin.h").exists()
            owners[folder] = "" if itself else "c++" if "c++" in folder.parts else "c"
    return owners


def headers(compiler: list[str], flags: list[str]) -> list[Path]:
    """All headers that it reads, by the paths where it found them. These may contain links to somewhere else."""
    found: dict[Path, None] = {}
    as_found = ["-fno-canonical-system-headers"]
    if subprocess.run(
        [*compiler, *as_found, "-E", "-x", "c++", os.devnull], capture_output=True, check=False
    ).returncode:
        as_found = []  # an older clang++, which does so by itself
    for form in FORMS:
        command = [*compiler, *flags, *form, *as_found, "-M", "-x", "c++", "-"]
        rule = run(command, EVERYTHING).stdout.replace("\\\n", " ")
        for word in rule.split(":", 1)[1].replace("\\ ", "\0").split():
            found[Path(os.path.normpath(word.replace("\0", " ")))] = None
    return list(found)


def try_out(to: Path, compiler: list[str], flags: list[str]) -> None:
    """End if the copied headers, with the compiler's own, are not enough for the compiler itself.

    It reads them all, and compiles none. To g++ 16 a call in SYCL's headers is ambiguous, and only SYCL's own compiler
    has to understand it.
    """
    own = [folder for folder, owner in folders(compiler).items() if not owner]
    where = [f"-isystem{folder}" for folder in (to / "c++", *own, to / "c")]
    for form in FORMS:
        run([*compiler, "-nostdinc", *flags, *form, *where, "-E", "-o", os.devnull, "-x", "c++", "-"], EVERYTHING)


def copy(header: Path, to: Path) -> None:
    """Copy them. Of two with one name it takes the first, as the compiler does."""
    if not to.exists():
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(header, to)


def main() -> None:
    """Copy the headers, and try them."""
    to, compiler, flags = Path(sys.argv[1]), sys.argv[2:3], sys.argv[3:]
    owners = folders(compiler)
    shutil.rmtree(to, ignore_errors=True)
    for header in headers(compiler, flags):
        around = sorted(
            (folder for folder in owners if header.is_relative_to(folder)), key=lambda folder: len(folder.parts)
        )
        owner = owners[around[-1]] if around else ""  # none: SYCL's own
        if owner:
            # C++ headers in the folder `backward` are included with its name, and without.
            for folder in around if owner == "c++" else around[-1:]:
                if owners[folder] == owner:
                    copy(header, to / owner / header.relative_to(folder))
    try_out(to, compiler, flags)
    (to / "NOTICE").write_text(NOTICE, encoding="utf-8")


if __name__ == "__main__":
    main()
