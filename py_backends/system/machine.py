"""Describes the machine on which results were taken."""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import os
import platform
import re
import resource
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from py_backends import folders, registry
from py_backends.contract import Target
from py_backends.system import caches, control_groups, cpu, interpreter

_INSTRUCTION_SETS = {
    "x86_64": ("sse2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile"),
    "aarch64": ("asimd", "sve"),
}
"""By architecture, since an emulator may show the features of the CPU on which it runs."""
_LEVELS = {"amx": "AVX512F", "avx512": "AVX512F", "avx2": "AVX2", "fma": "FMA3"}
"""Prefixes of features that come with a level of instructions, and NumPy's name for that level."""
_THREAD_SETTINGS = re.compile(
    r"(OMP|GOMP|KMP|MKL|OPENBLAS|GOTO|BLIS|TBB|DPCPP_CPU|CL_CONFIG_CPU|POCL)_\w+"
    r"|NUMBA_NUM_THREADS|NUMBA_THREADING_LAYER|ONEAPI_DEVICE_SELECTOR|CUDA_VISIBLE_DEVICES"
)
"""Environment variables that set how many threads run, where they run, and how they wait."""
_INDIRECT_COMPILERS = ("llvmlite", "intel-sycl-rt")
"""Compilers of kernels that are requirements of requirements."""
_FREQUENCIES = Path("/sys/devices/system/cpu/cpu0/cpufreq")


def cpus() -> int:
    """The number of logical CPUs that this process may use: by its affinity, and no more than a quota fills."""
    allowed, quota = len(os.sched_getaffinity(0)), control_groups.cpu_quota()
    return allowed if quota is None else min(allowed, max(1, math.ceil(quota)))


def busy_cpus() -> float | None:
    """The number of logical CPUs in use, measured over a fifth of a second in which this process sleeps.

    None if the system does not tell.
    """
    import psutil

    if _cpu_times() is None:
        return None
    fraction: float = psutil.cpu_percent(interval=0.2) / 100
    return round(fraction * (psutil.cpu_count() or 1), 2)


def free_memory() -> int:
    """Bytes that this process may still allocate: the free memory, or less by the limits on it.

    The kernel ends a process beyond the limit of its control group, or of any group above that one.
    """
    import psutil

    free: int = psutil.virtual_memory().available
    limits = control_groups.memory_left()
    of_addresses, _ = resource.getrlimit(resource.RLIMIT_AS)
    if of_addresses != resource.RLIM_INFINITY:
        limits.append(of_addresses - psutil.Process().memory_info().vms)
    return max(0, min([free, *limits]))


def state(begin: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The parts of the machine's state that may change from run to run. Unknown entries are None.

    begin: the state when the run began, for `steal` since then.

    The entries of the result:
    load: the average number of processes that ran or were ready to, over 1, 5 and 15 minutes.
    steal: the part of all CPU time that the host of a virtual machine took, `since_boot` and `since_begin`. `seconds`
        are the counters from which they are computed.
    pressure: the percentage of the last 10 seconds in which some process waited for a CPU.
    governor, megahertz: of the first CPU, and of all CPUs on average.
    temperatures: the highest of each sensor, in degrees Celsius.
    pinned_to: the CPUs that this process may use, if these are not all.
    quota: how many CPUs' time it may use, if its control group has a limit.
    thread_settings: the environment variables for threads that are set.
    """
    return {
        "load": [round(load, 2) for load in os.getloadavg()],
        "steal": _steal(begin and begin["steal"]["seconds"]),
        "pressure": _pressure(),
        "governor": _first_line(_FREQUENCIES / "scaling_governor"),
        "megahertz": _megahertz(),
        "temperatures": _temperatures(),
        "pinned_to": sorted(mine) if len(mine := os.sched_getaffinity(0)) < (os.cpu_count() or 1) else None,
        "quota": control_groups.cpu_quota(),
        "thread_settings": {name: value for name, value in sorted(os.environ.items()) if is_thread_setting(name)},
    }


def is_thread_setting(name: str) -> bool:
    """Whether an environment variable sets how threads run."""
    return _THREAD_SETTINGS.fullmatch(name) is not None


def versions(found: Iterable[tuple[str, Target]]) -> dict[str, str]:
    """The versions of compiler, library and driver behind each available backend and target, as doctor gives them."""
    return {f"{backend} {target.name}": target.version for backend, target in found if target.version}


def _steal(begin: Mapping[str, float] | None) -> dict[str, Any]:
    times = _cpu_times()
    stolen, others = (0.0, 0.0) if times is None else (times.steal, times.idle + times.iowait + _busy(times))
    seconds = {"stolen": stolen, "all": stolen + others}
    return {
        "since_boot": _share(seconds, {"stolen": 0.0, "all": 0.0}),
        "since_begin": _share(seconds, begin) if begin else None,
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
    }


def _cpu_times() -> Any | None:
    """Those of all CPUs since the system began; None for a system that hides them, as some containers do."""
    import psutil

    try:
        times = psutil.cpu_times()
        return times if _busy(times) + times.idle + times.iowait + times.steal > 0 else None
    except (OSError, TypeError, ValueError, AttributeError):  # /proc/stat is empty, or lacks columns
        return None


def _busy(times: Any) -> float:
    """CPU time spent working. The time of guests is already in `user` and `nice`."""
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def _share(now: Mapping[str, float], before: Mapping[str, float]) -> float | None:
    whole = now["all"] - before["all"]
    return round((now["stolen"] - before["stolen"]) / whole, 5) if whole > 0 else None


def _pressure() -> float | None:
    line = _first_line(Path("/proc/pressure/cpu"))  # some avg10=0.00 avg60=0.00 avg300=0.00 total=0
    average = re.search(r"avg10=([\d.]+)", line or "")
    return float(average[1]) if average else None


def _megahertz() -> int | None:
    """The clock of the CPUs on average, as the operating system reports it."""
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
    except (OSError, UnicodeDecodeError):  # missing, or not readable for us
        return None


@cache
def describe() -> dict[str, Any]:
    """The `machine` of the results."""
    import psutil

    name, flags = _cpu_of_system() or _probed_cpu()
    return {
        "cpu": name,
        "isa": [name for name in _INSTRUCTION_SETS.get(platform.machine(), ()) if name in flags],
        "logical_cpus": cpus(),
        "memory_bytes": psutil.virtual_memory().total,
        "cache_bytes": {f"L{level}": size for level, size in caches.by_level().items()},
        "os": _system(),
        "python": platform.python_version(),
        "packages": _packages(),
    }


def _forget(_: str) -> None:
    """Describe the packages anew: the hash of a folder is among them."""
    describe.cache_clear()


folders.FORGET.append(_forget)


def _system() -> str:
    """The operating system. `platform` may start a process, `uname`."""
    with interpreter.without_fork_handlers():
        return platform.platform()


def _cpu_of_system() -> tuple[str, set[str]] | None:
    """The name and the features of the first CPU; None if the system does not give both. On x86 it does."""
    name, features = cpu.name(), cpu.features()
    return (name, _usable(features)) if name and features else None


def _usable(flags: set[str]) -> set[str]:
    """The features without those that programs cannot use: an emulator may pass on the list of its host."""
    try:
        found = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__  # as numpy.show_runtime does
    except (ImportError, AttributeError):  # another NumPy
        return flags
    lacks = [name for name, of_numpy in _LEVELS.items() if not found.get(of_numpy, True)]
    return {flag for flag in flags if not flag.startswith(tuple(lacks))}


def _probed_cpu() -> tuple[str, set[str]]:
    """The name and the features of any CPU, from a library that starts processes and takes about a second."""
    import cpuinfo

    found = cpuinfo.get_cpu_info()
    return found.get("brand_raw") or platform.machine(), set(found.get("flags", ()))


def _packages() -> dict[str, str]:
    """The versions of installed packages: requirements of the distribution and its extras, compilers, and plug-ins.

    Folders of kernels and sources have their hashes.
    """
    try:
        requirements = importlib.metadata.requires("py-backends") or []
    except importlib.metadata.PackageNotFoundError:  # run from a clone that was never installed
        requirements = ["numpy"]
    names = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in requirements}
    installed = registry.plugin_packages()
    for name in names | set(_INDIRECT_COMPILERS):
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return dict(sorted(installed.items()))
