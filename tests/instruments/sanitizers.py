"""The sanitizers of compilers: how to compile for them, what to tell them, and what they say."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compilers import family

HERE = Path(__file__).parent
_SUPPRESSIONS = HERE / "suppressions"
REPORTED = re.compile(
    r"^.*(?:AddressSanitizer|UndefinedBehaviorSanitizer|ThreadSanitizer): .*$"
    r"|^.*: runtime error: .*$"
    r"|^not all work items of a group come to its barrier$",
    re.MULTILINE,
)
"""The first line of each report."""


@dataclass(frozen=True, eq=False)
class Sanitizer:
    """One instrument of a compiler, for whole programs or for modules that Python loads.

    name: as in `cmake --preset NAME`.
    flags: of the compiler.
    runtimes: what its library may be called, by the compiler's family.
    options: the variables that it reads, without suppressions and the place of its reports.
    """

    name: str
    flags: tuple[str, ...]
    runtimes: Mapping[str, tuple[str, ...]]
    options: Mapping[str, str]

    def environment(self, reports: Path | None = None) -> dict[str, str]:
        """The variables for a program that is instrumented; it writes to files `reports.PID`, or to standard error."""
        where = f":log_path={reports}" if reports else ""
        found = {}
        for variable, options in self.options.items():
            suppressions = _SUPPRESSIONS / f"{variable.partition('_')[0].lower()}.txt"
            also = f":suppressions={suppressions}" if suppressions.is_file() else ""
            found[variable] = f"{options}{also}{where}"
        return found

    def runtime(self, compiler: str) -> Path:
        """Its library, which a Python that is not instrumented has to load first; FileNotFoundError if not there."""
        for name in self.runtimes[family(compiler)]:
            asked = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
            path = Path(asked.stdout.strip())
            if path.is_absolute() and path.exists():
                return path.resolve()
        raise FileNotFoundError(f"{compiler} has no {' or '.join(self.runtimes[family(compiler)])}")


ADDRESS = Sanitizer(
    "asan",
    # What a cast to an integer makes of a number that is too large is undefined, but not among `undefined`.
    ("-fsanitize=address,undefined", "-fsanitize=float-cast-overflow", "-fno-sanitize-recover=all"),
    {"g++": ("libasan.so",), "clang": ("libclang_rt.asan-x86_64.so", "libclang_rt.asan.so")},
    {
        # Python never gives back all that it holds. A request for more memory than there is must be answered by null,
        # from which a MemoryError is made.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    },
)
THREADS = Sanitizer(
    "tsan",
    ("-fsanitize=thread",),
    {"g++": ("libtsan.so",), "clang": ("libclang_rt.tsan-x86_64.so", "libclang_rt.tsan.so")},
    # Python and its libraries are not instrumented: what they lock is seen, what they read and write is not. Histories
    # are long, since a race with an access that is no longer in one is not reported.
    {
        "TSAN_OPTIONS": "ignore_noninstrumented_modules=1:exitcode=66:die_after_fork=0:history_size=7:"
        "allocator_may_return_null=1"
    },
)
SANITIZERS = {sanitizer.name: sanitizer for sanitizer in (ADDRESS, THREADS)}
