"""What results say of the machine: its state when a run begins and ends, and the versions of what computes."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import cpuinfo
import psutil
import pytest
from commands import CLONE
from conftest import found
from numpy._core import _multiarray_umath

from py_backends.contract import Target
from py_backends.display import layout
from py_backends.system import control_groups, cpu, machine

SET_BY_PEOPLE = [
    "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_CPU_AFFINITY", "KMP_BLOCKTIME", "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "DPCPP_CPU_NUM_CUS", "CL_CONFIG_CPU_FORCE_MAX_WG_SIZE",
    "POCL_MAX_PTHREAD_COUNT", "CUDA_VISIBLE_DEVICES",
]  # fmt: skip


def test_the_state_is_strict_json_of_every_field() -> None:
    state = machine.state(machine.state())
    assert json.loads(json.dumps(state, allow_nan=False)) == state
    assert set(state) == {
        "load", "steal", "pressure", "governor", "megahertz", "temperatures", "pinned_to", "quota", "thread_settings",
    }  # fmt: skip
    assert len(state["load"]) == 3
    assert set(state["steal"]) == {"since_boot", "since_begin", "seconds"}


def times(steal: float, user: float) -> SimpleNamespace:
    return SimpleNamespace(user=user, nice=1, system=2, idle=3, iowait=4, irq=5, softirq=5, steal=steal, guest=user)


def test_steal_is_a_share_of_all_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_times", lambda: times(steal=10, user=70))
    begin = machine.state()
    assert (begin["steal"]["since_boot"], begin["steal"]["since_begin"]) == (0.1, None)
    monkeypatch.setattr(psutil, "cpu_times", lambda: times(steal=12, user=168))
    end = machine.state(begin)
    assert (end["steal"]["since_boot"], end["steal"]["since_begin"]) == (0.06, 0.02)


@pytest.mark.parametrize("stat", ["", "cpu  0 0 0 0 0 0 0 0 0 0\n", "cpu  1 2 3\n"])
def test_a_system_that_hides_the_times_of_its_cpus(stat: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As containers do whose /proc is made by lxcfs or gVisor."""
    (tmp_path / "stat").write_text(stat, encoding="ascii")
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    assert machine.busy_cpus() is None
    assert machine.state()["steal"] == {
        "since_boot": None, "since_begin": None, "seconds": {"stolen": 0.0, "all": 0.0}
    }  # fmt: skip


def test_what_cannot_be_read_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse() -> None:
        raise NotImplementedError

    monkeypatch.setattr(psutil, "cpu_freq", refuse)
    monkeypatch.setattr(psutil, "sensors_temperatures", dict)
    monkeypatch.setattr(machine, "_FREQUENCIES", tmp_path)
    state = machine.state()
    assert (state["megahertz"], state["temperatures"], state["governor"]) == (None, None, None)


def test_sensors_and_governor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "scaling_governor").write_text("powersave\n")
    cores = [SimpleNamespace(current=41.0), SimpleNamespace(current=57.5), SimpleNamespace(current=None)]
    monkeypatch.setattr(machine, "_FREQUENCIES", tmp_path)
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: {"coretemp": cores, "broken": cores[2:]})
    state = machine.state()
    assert (state["governor"], state["temperatures"]) == ("powersave", {"coretemp": 57.5})


def test_thread_settings_are_those_that_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in filter(machine.is_thread_setting, list(os.environ)):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOMP_NUM_THREADS", "1")
    assert machine.state()["thread_settings"] == {}
    for name in SET_BY_PEOPLE:
        monkeypatch.setenv(name, "2")
    assert machine.state()["thread_settings"] == dict.fromkeys(sorted(SET_BY_PEOPLE), "2")


def test_pinning_is_said_where_not_all_cpus_are_ours() -> None:
    usable = os.sched_getaffinity(0)
    one = min(usable)
    os.sched_setaffinity(0, {one})
    try:
        pinned_to = machine.state()["pinned_to"]
    finally:
        os.sched_setaffinity(0, usable)
    assert pinned_to == ([one] if (os.cpu_count() or 1) > 1 else None)


def test_versions_are_doctors() -> None:
    targets = [("cuda", Target.missing("nvidia", "no driver")), ("avx", Target("sse", version="GNU 12.2.0"))]
    assert machine.versions(targets) == {"avx sse": "GNU 12.2.0"}
    assert machine.versions(found())["python cpu"].startswith("CPython ")


ARM = {"arch_string_raw": "aarch64", "flags": ["aes", "asimd", "asimddp", "cpuid", "fp", "sve"]}
X86 = {"brand_raw": "Made-up CPU", "flags": ["avx", "avx2", "fma", "sse2"]}


def test_features_that_programs_do_not_find_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU hands the host's list through, of a CPU that it does not emulate."""
    told = tmp_path / "cpuinfo"
    told.write_text("model name\t: Made-up CPU\nflags\t: sse2 avx avx2 fma avx512f avx512_bf16 amx_tile\n\n")
    monkeypatch.setattr(cpu, "_CPUS", told)
    monkeypatch.setattr(cpu, "name", cpu.name.__wrapped__)
    monkeypatch.setattr(_multiarray_umath, "__cpu_features__", {"AVX2": True, "FMA3": True, "AVX512F": False})
    assert machine._cpu_of_system() == ("Made-up CPU", {"sse2", "avx", "avx2", "fma"})
    monkeypatch.setattr(_multiarray_umath, "__cpu_features__", {"AVX2": True, "FMA3": True, "AVX512F": True})
    assert machine._cpu_of_system() == ("Made-up CPU", set(told.read_text().split("flags\t: ")[1].split()))


@pytest.mark.parametrize(
    ("architecture", "said", "cpu", "isa", "shown"),
    [
        ("aarch64", ARM, "aarch64", ["asimd", "sve"], "SVE"),
        ("aarch64", ARM | {"brand_raw": "Neoverse-N1", "flags": ["asimd"]}, "Neoverse-N1", ["asimd"], "NEON"),
        ("aarch64", X86, "Made-up CPU", [], None),  # below an emulator
        ("x86_64", X86, "Made-up CPU", ["sse2", "avx", "avx2", "fma"], "AVX2"),
        ("riscv64", {}, "riscv64", [], None),
    ],
)
def test_instruction_sets_are_those_of_the_architecture(
    architecture, said, cpu, isa, shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: architecture)
    monkeypatch.setattr(machine, "_cpu_of_system", lambda: None)
    monkeypatch.setattr(cpuinfo, "get_cpu_info", lambda: said)
    machine.describe.cache_clear()
    try:
        described = machine.describe()
    finally:
        machine.describe.cache_clear()
    assert (described["cpu"], described["isa"]) == (cpu, isa)
    assert layout.best_instruction_set(described) == shown


def test_a_machine_in_words() -> None:
    known = {"cpu": "Made-up(R) CPU", "isa": ["sse2", "avx2"], "logical_cpus": 2}
    sizes = {"L1": 48 * 2**10, "L2": 1280 * 2**10, "L3": 32 * 2**20}
    assert layout.processor(known) == "Made-up CPU, 2 cores, AVX2"
    assert layout.caches(known | {"cache_bytes": sizes}) == "caches L1 48 KiB, L2 1.25 MiB, L3 32 MiB"
    assert layout.processor({}) == "unknown CPU"
    assert layout.caches({"cache_bytes": {}}) == layout.caches({}) == ""


@pytest.mark.numba_cpu
def test_the_compiler_of_numba_is_among_the_packages() -> None:
    assert machine.describe()["packages"]["llvmlite"]


def test_the_cpu_is_what_the_library_finds_where_the_system_tells_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, has = machine._probed_cpu()
    if told := machine._cpu_of_system():
        assert told[0] == name
        assert set(machine._INSTRUCTION_SETS) & told[1] == set(machine._INSTRUCTION_SETS) & has
    monkeypatch.setattr(cpu, "_CPUS", tmp_path / "cpuinfo")
    monkeypatch.setattr(cpu, "name", cpu.name.__wrapped__)
    assert machine._cpu_of_system() is None
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nFeatures\t: fp asimd\n\nHardware\t: a board\n")  # as on Arm
    assert machine._cpu_of_system() is None


V1, V2 = "cgroup", "cgroup2"


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes up this process's control group: what /proc says, and the folder at which the groups are mounted."""

    def make(kind: str, group: str, *, root: str = "/", mounted: str = "groups") -> Path:
        (tmp_path / mounted).mkdir()
        options = "rw,memory" if kind == V1 else "rw,nsdelegate"
        lines = {V1: f"4:cpu,cpuacct:/elsewhere\n3:memory:{group}\n0::/elsewhere\n", V2: f"0::{group}\n"}
        point = str(tmp_path / mounted).replace(" ", r"\040")
        (tmp_path / "cgroup").write_text(lines[kind])
        (tmp_path / "mountinfo").write_text(
            "22 1 0:20 / /proc rw,relatime - proc proc rw\n"
            f"35 31 0:32 {root} {point} rw,nosuid shared:9 - {kind} {kind} {options}\n"
            f"36 31 0:33 {root} {tmp_path}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        )
        monkeypatch.setattr(control_groups, "_SELF", tmp_path)
        monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=5000))
        return tmp_path / mounted

    return make


def limit(folder: Path, kind: str, most: str, used: str, stat: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = ("max", "current") if kind == V2 else ("limit_in_bytes", "usage_in_bytes")
    for name, text in zip((*names, "stat"), (most, used, stat), strict=True):
        (folder / f"memory.{name}").write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("kind", "most", "used", "stat", "free"),
    [
        (V2, "1000", "900", "anon 300\nfile 600\nactive_file 200\ninactive_file 350\n", 650),
        (V2, "1000", "1100", "inactive_file 50\n", 0),
        (V2, "max", "900", "inactive_file 50\n", 5000),
        (V2, "100000", "0", "", 5000),
        (V1, "1000", "900", "inactive_file 30\ntotal_active_file 200\ntotal_inactive_file 350\n", 650),
        (V1, "9223372036854771712", "900", "total_inactive_file 50\n", 5000),
    ],
)
def test_files_that_linux_has_cached_are_free_memory(
    kind: str, most: str, used: str, stat: str, free: int, groups: Callable[..., Path]
) -> None:
    """In a container with a limit, after a build had filled the cache, every row was skipped for want of memory."""
    limit(groups(kind, "/job", mounted="my groups") / "job", kind, most, used, stat)
    assert machine.free_memory() == free


@pytest.mark.parametrize("kind", [V1, V2])
def test_every_group_above_ours_may_have_the_limit(kind: str, groups: Callable[..., Path]) -> None:
    """Slurm limits a job, and systemd a slice; the group of the process itself has no limit then."""
    top = groups(kind, "/slurm/job_7/step_0/task_0")
    none = "max" if kind == V2 else "9223372036854771712"
    for folder, most in (("slurm", "4000"), ("slurm/job_7", "2000"), ("slurm/job_7/step_0", none)):
        limit(top / folder, kind, most, "500")
    assert machine.free_memory() == 1500


@pytest.mark.parametrize(
    ("group", "root"),
    [("/docker/one", "/docker/one"), ("/", "/"), ("/../..", "/"), ("/pods/one", "/docker/one"), ("/one", "/..")],
)
@pytest.mark.parametrize("kind", [V1, V2])
def test_in_a_container_the_mounted_group_is_its_own(
    kind: str, group: str, root: str, groups: Callable[..., Path]
) -> None:
    limit(groups(kind, group, root=root), kind, "1000", "400")
    assert machine.free_memory() == 600


@pytest.mark.parametrize(("quota", "threads"), [("50000", 1), ("150000", 2), (None, 8), ("6400000", 8)])
@pytest.mark.parametrize("kind", [V1, V2])
def test_a_quota_of_cpu_time_limits_the_threads_and_is_told(
    kind: str, quota: str | None, threads: int, groups: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of `docker run --cpus 0.5`: the CPUs that may be used are as many as before."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    top = groups(kind, "/job")
    texts = {"cpu.max": f"{quota or 'max'} 100000"}
    if kind == V1:
        top, texts = top.parent / "cpu", {"cpu.cfs_quota_us": quota or "-1", "cpu.cfs_period_us": "100000"}
        top.mkdir()
    for name, text in texts.items():
        (top / name).write_text(f"{text}\n")
    assert machine.cpus() == threads
    assert machine.state()["quota"] == (quota and int(quota) / 100000)


def test_where_no_group_can_be_seen_the_free_memory_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_groups, "_SELF", tmp_path)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=5000))
    assert machine.free_memory() == 5000


def test_a_limit_of_the_address_space_counts() -> None:
    """As `ulimit -v` sets it."""
    code = """
import resource, psutil
from py_backends.system import machine
resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + 2**28,) * 2)
print(machine.free_memory())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=CLONE)
    assert 0 < int(run.stdout) <= 2**28
