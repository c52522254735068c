"""Describes the machine on which results were taken."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from py_backends import caches, registry
from py_backends.contract import Target

_INSTRUCTION_SETS = {
    "x86_64": ("sse2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile"),
    "aarch64": ("asimd", "sve"),
}
"""By architecture: an emulator of one may show another's, the machine's below it."""
_LEVELS = {"amx": "AVX512F", "avx512": "AVX512F", "avx2": "AVX2", "fma": "FMA3"}
"""How features begin that come with a level of instructions, and what NumPy calls that."""
_THREAD_SETTINGS = re.compile(
    r"(OMP|GOMP|KMP|MKL|OPENBLAS|GOTO|BLIS|TBB|DPCPP_CPU|CL_CONFIG_CPU|POCL)_\w+"
    r"|NUMBA_NUM_THREADS|NUMBA_THREADING_LAYER|ONEAPI_DEVICE_SELECTOR|CUDA_VISIBLE_DEVICES"
)
"""Environment variables by which people set how many threads run, where, and how they wait."""
_COMPILERS_OF_OTHERS = ("llvmlite", "intel-sycl-rt")
"""What compiles kernels and comes with something that the distribution requires."""
_FREQUENCIES = Path("/sys/devices/system/cpu/cpu0/cpufreq")
_CPUS = Path("/proc/cpuinfo")


def cpus() -> int:
    """Logical CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def busy_cpus() -> float:
    """How many logical CPUs others are using just now, measured over a fifth of a second."""
    import psutil

    fraction: float = psutil.cpu_percent(interval=0.2) / 100
    return round(fraction * (psutil.cpu_count() or 1), 2)


def free_memory() -> int:
    """Bytes that this process may still take, by the machine's memory and its control group's limit."""
    import psutil

    free: int = psutil.virtual_memory().available
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = ((group / name).read_text().strip() for name in ("memory.max", "memory.current"))
    except OSError:  # no control group of version 2, or none with a limit
        return free
    return free if limit == "max" else min(free, int(limit) - int(used))


def state(begin: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The state of the machine at this moment, as far as it may change from run to run; None for unknown entries.

    begin: the state when the run began, for what happened since.

    load: processes that ran or wanted to, on average over 1, 5 and 15 minutes.
    steal: the share of all CPU time that the host of a virtual machine took, `since_boot` and `since_begin`;
        `seconds` are what they are computed from.
    pressure: per cent of the last 10 seconds in which some process waited for a CPU.
    governor, megahertz: of the first CPU.
    temperatures: the highest of each sensor, in degrees Celsius.
    pinned_to: the CPUs that this process may use, where these are not all.
    thread_settings: the environment variables for threads that are set.
    """
    return {
        "load": [round(load, 2) for load in os.getloadavg()],
        "steal": _steal(begin and begin["steal"]["seconds"]),
        "pressure": _pressure(),
        "governor": _first_line(_FREQUENCIES / "scaling_governor"),
        "megahertz": _megahertz(),
        "temperatures": _temperatures(),
        "pinned_to": sorted(os.sched_getaffinity(0)) if cpus() < (os.cpu_count() or 1) else None,
        "thread_settings": {name: value for name, value in sorted(os.environ.items()) if is_thread_setting(name)},
    }


def is_thread_setting(name: str) -> bool:
    """Whether an environment variable is one by which people set threads."""
    return _THREAD_SETTINGS.fullmatch(name) is not None


def versions(found: Iterable[tuple[str, Target]]) -> dict[str, str]:
    """The compiler, library and driver behind each backend and target that is there, as doctor says them."""
    return {f"{backend} {target.name}": target.version for backend, target in found if target.version}


def _steal(begin: Mapping[str, float] | None) -> dict[str, Any]:
    import psutil

    times = psutil.cpu_times()
    seconds = {"stolen": times.steal, "all": times.idle + times.iowait + _busy(times) + times.steal}
    return {
        "since_boot": _share(seconds, {"stolen": 0.0, "all": 0.0}),
        "since_begin": _share(seconds, begin) if begin else None,
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
    }


def _busy(times: Any) -> float:
    """Time for which CPUs worked; that of guests is already in `user` and `nice`."""
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def _share(now: Mapping[str, float], before: Mapping[str, float]) -> float | None:
    whole = now["all"] - before["all"]
    return round((now["stolen"] - before["stolen"]) / whole, 5) if whole > 0 else None


def _pressure() -> float | None:
    line = _first_line(Path("/proc/pressure/cpu"))  # some avg10=0.00 avg60=0.00 avg300=0.00 total=0
    average = re.search(r"avg10=([\d.]+)", line or "")
    return float(average[1]) if average else None


def _megahertz() -> int | None:
    """What the CPU runs at just now, by the kernel's governor, or else what it says of itself."""
    import psutil

    try:
        frequency = psutil.cpu_freq()
    except (NotImplementedError, OSError):  # a system that hides it
        return None
    return round(frequency.current) if frequency and frequency.current else None


def _temperatures() -> dict[str, float] | None:
    import psutil

    sensors = psutil.sensors_temperatures() if hasattr(psutil, "sensors_temperatures") else {}
    read = {name: [each.current for each in readings if each.current is not None] for name, readings in sensors.items()}
    return {name: max(degrees) for name, degrees in read.items() if degrees} or None


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError):  # not there, or not for us to read
        return None


@cache
def describe() -> dict[str, Any]:
    """The `machine` of the results."""
    import psutil

    name, flags = _told_cpu() or _probed_cpu()
    return {
        "cpu": name,
        "isa": [name for name in _INSTRUCTION_SETS.get(platform.machine(), ()) if name in flags],
        "logical_cpus": cpus(),
        "memory_bytes": psutil.virtual_memory().total,
        "cache_bytes": {f"L{level}": size for level, size in caches.by_level().items()},
        "os": platform.platform(),
        "python": platform.python_version(),
        "packages": _packages(),
    }


def _told_cpu() -> tuple[str, set[str]] | None:
    """The name and the features of the first CPU, where the system gives both, as it does on x86."""
    try:
        first = _CPUS.read_text(encoding="utf-8").partition("\n\n")[0]
    except (OSError, UnicodeDecodeError):
        return None
    facts = dict(re.findall(r"^(model name|flags)\s*: *(.*\S)", first, re.MULTILINE))
    return (facts["model name"], _seen(set(facts["flags"].split()))) if len(facts) == 2 else None


def _seen(flags: set[str]) -> set[str]:
    """Features of the CPU but for those that programs do not find: an emulator may hand its host's list through."""
    try:
        found = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__  # as numpy.show_runtime does
    except (ImportError, AttributeError):  # another NumPy
        return flags
    lacks = [name for name, of_numpy in _LEVELS.items() if not found.get(of_numpy, True)]
    return {flag for flag in flags if not flag.startswith(tuple(lacks))}


def _probed_cpu() -> tuple[str, set[str]]:
    """The same of any CPU, by a library that starts processes for it and takes about a second."""
    import cpuinfo

    cpu = cpuinfo.get_cpu_info()
    return cpu.get("brand_raw") or platform.machine(), set(cpu.get("flags", ()))


def _packages() -> dict[str, str]:
    """Versions of what is installed of all that the distribution requires, its extras, their compilers and plug-ins."""
    try:
        requirements = importlib.metadata.requires("py-backends") or []
    except importlib.metadata.PackageNotFoundError:  # run from a clone that was never installed
        requirements = ["numpy"]
    names = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in requirements}
    installed = registry.plugin_packages()
    for name in names | set(_COMPILERS_OF_OTHERS):
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return dict(sorted(installed.items()))
