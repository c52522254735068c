"""The launcher that started this process among others, if any: its number of ranks, and its library.

Only variables and files are used, since importing MPI would make the process a rank.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.system import interpreter

TEMPLATE = "PY_BACKENDS_LAUNCHER"
"""The variable with the command line that starts ranks, such as `srun -n {ranks}`."""
RANKS = "{ranks}"
LIBRARY = "MPI4PY_LIBMPI"
"""The variable that tells mpi4py what to load."""

MPICH, OPEN_MPI = "libmpi.so.12", "libmpi.so.40"
"""The names by which mpi4py's wheel loads a library: those of MPICH and its relatives (Intel's, Cray's), and of Open
MPI."""
_FOLDERS = "lib", "lib64", f"lib/{os.uname().machine}-linux-gnu", "lib/release"
_LAUNCHERS = {
    "hydra_pmi_proxy": MPICH,
    "mpiexec.hydra": MPICH,
    "mpiexec.gforker": MPICH,
    "prte": OPEN_MPI,
    "prted": OPEN_MPI,
    "prterun": OPEN_MPI,
    "orted": OPEN_MPI,
    "orterun": OPEN_MPI,
}
"""The programs that are the parents of ranks, each with its library."""
_RANK_VARIABLES = re.compile(
    # Users' settings stay, although they begin alike: OMPI_MCA_btl, OMPI_ALLOW_RUN_AS_ROOT, I_MPI_FABRICS. Of Slurm's
    # variables, those of the job stay, since a child's srun needs them. Those of the step and its task go.
    r"""PMI2?_ | PMIX_(?!MCA_) | PALS_
    | OMPI_(?!MCA_|ALLOW_RUN_AS_ROOT) | PRTE_(?!MCA_) | OPAL_USER_PARAMS_GIVEN
    | OMPI_MCA_(orte_|ess|pmix$|shmem_RUNTIME|initial_wdir|mpi_oversubscribe|num_procs|cpu_type|PREFIXES)
    | HYDI_ | HYDRA_(BSTRAP|LAUNCH_TYPE) | MPI_(LOCAL|UNIVERSE_SIZE|APPNUM) | MPIR_CVAR_CH3_INTERFACE_HOSTNAME
    | I_MPI_(INFO_|PIN_INFO|PIN_MAPPING|HYDRA_UUID|INTERNAL_) | MV2_COMM_WORLD_
    | FLUX_(JOB_(ID|SIZE|NNODES)|TASK_)
    | SLURM_(STEP|PROCID|LOCALID|NODEID|GTIDS|TASK_PID|SRUN_COMM|PMI|PTY)""",
    re.VERBOSE,
)
_SIZES = "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "FLUX_JOB_SIZE", "SLURM_STEP_NUM_TASKS"
"""How many processes were started together, the nearest launcher first: schedulers start other launchers, too."""
_WITH_PMI = {"FLUX_JOB_SIZE": "flux run -o pmi=simple", "SLURM_STEP_NUM_TASKS": "srun --mpi=pmi2"}
"""How to ask a scheduler for PMI, the service by which the ranks that it starts find each other. Slurm by itself gives
none. To Open MPI 5, whose launchers need PMIx, `srun --mpi=list` says whether there is that."""


def world_size() -> int:
    """How many processes a launcher such as mpirun or srun has started together with this one; 1 where none has.

    They may still be alone to MPI, which `check_world` tells. The shell that runs a script of Slurm's has no number.
    """
    told = _told()
    return _number(told) if told else 1


def _told() -> str | None:
    """The variable that has their number, if any."""
    told = next(filter(_number, _SIZES), None)
    return None if told == "SLURM_STEP_NUM_TASKS" and _below_a_terminal() else told


def _below_a_terminal() -> bool:
    """Whether this process was started in a shell of `srun --pty`, which runs for the first task alone."""
    return "SLURM_PTY_PORT" in os.environ and _number("SLURM_TASK_PID") != os.getpid()


def _number(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else 0


def is_first() -> bool:
    """Whether this process is the first of those ranks, by the variables.

    It holds before MPI can tell, and without it.
    """
    names = "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "FLUX_TASK_RANK", "SLURM_PROCID"
    return next((_number(name) for name in names if name in os.environ), 0) == 0


def without_launcher(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables without those that would make a child seem a rank, or its launcher a nested one."""
    kept = {name: value for name, value in environment.items() if not _RANK_VARIABLES.match(name)}
    if "PRTE_LAUNCHED" in environment:  # Open MPI tells its ranks where it is, and another one would look there
        kept.pop("OPAL_PREFIX", None)
    return kept


def use_its_library() -> None:
    """Make mpi4py load the library of the launcher that started this process, rather than that of a wheel.

    Call it before MPI is imported. Nothing changes if the user has chosen a library, or none is found.
    """
    # Its warning has three lines, and `check_world` has one.
    warnings.filterwarnings("ignore", message="suspicious MPI execution environment", category=RuntimeWarning)
    if not any(map(os.environ.get, (LIBRARY, "MPI4PY_MPIABI"))) and (found := _its_library()):
        os.environ[LIBRARY] = found


def _its_library() -> str | None:
    started_by = next(_launchers(), None)
    if started_by:
        found = library(started_by, _LAUNCHERS[started_by.name])
        return str(found) if found else None
    # There is no library beside Slurm's daemon. The one meant is what a module has put into the paths.
    names = [OPEN_MPI, MPICH] if "PMIX_RANK" in os.environ else [MPICH, OPEN_MPI]
    if _lacks_pmi():
        names.remove(OPEN_MPI)  # it would end this process, with a page of advice on how to compile it
    of_the_site = [mpiexec for mpiexec in in_path() if not mpiexec.is_relative_to(sys.prefix)]
    beside = (library(mpiexec, name) for mpiexec in of_the_site[:1] for name in names)
    return next((str(each) for each in beside if each), None) or next(filter(_loads, names), None)


def _launchers() -> Iterator[Path]:
    """Launchers among this process's ancestors, the nearest first."""
    process = os.getppid()
    while process > 1:
        try:
            program = Path(f"/proc/{process}/exe").readlink()
            # The name of the program, in parentheses, may contain anything.
            fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        except OSError:  # another user's, such as Slurm's daemon, or it has ended
            return
        if program.name in _LAUNCHERS:
            yield program
        process = int(fields.split()[1])


def _loads(name: str) -> bool:
    """Whether the system's loader finds it, by LD_LIBRARY_PATH or its cache."""
    import ctypes

    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def in_path() -> Iterator[Path]:
    """Every mpiexec beside this Python and in PATH, in that order."""
    beside = str(Path(interpreter.python()).parent)
    for folder in dict.fromkeys((beside, *os.environ.get("PATH", "").split(os.pathsep))):
        mpiexec = Path(folder, "mpiexec")
        if mpiexec.is_absolute() and is_file(mpiexec, os.X_OK):
            yield mpiexec


def library(program: Path, name: str) -> Path | None:
    """The library of this name that was installed together with a program such as mpiexec."""
    prefixes = program.parent.parent, program.resolve().parent.parent
    files = (prefix / folder / name for prefix in prefixes for folder in _FOLDERS)
    return next(filter(is_file, files), None)


def is_file(path: Path, use: int = os.R_OK) -> bool:
    """Whether there is a file that this user may use.

    Path.is_file would raise PermissionError in another user's folder.
    """
    return os.access(path, use) and path.is_file()


def words(template: str) -> list[str]:
    """The words of a launcher's command line. Raises WrongRequest for an invalid one."""
    wanted = f'a launcher is written "srun -n {RANKS}", not {template!r}'
    try:
        found = shlex.split(template)
    except ValueError as error:
        raise WrongRequest(f"{wanted}: {str(error).lower()}") from None
    if not any(RANKS in word for word in found):
        raise WrongRequest(f"{wanted}: {RANKS} stands for how many ranks it is to start")
    if shutil.which(found[0]) is None:
        raise WrongRequest(f"the launcher {found[0]!r} is not in PATH")
    return found


def check_world(size: int, expected: int | None = None) -> None:
    """Raise BackendUnavailable if MPI's world has another size than the launcher has started.

    expected: how many ranks were asked for; None for the number in the launcher's variables, if any.
    """
    told = world_size()
    started = expected or (told if told > 1 else size)
    if size == started:
        return
    if with_pmi := _lacks_pmi():
        reason = f"{started} processes were started together without PMI, by which those of MPI find each other"
        raise BackendUnavailable(reason, f"start them by {with_pmi}")
    by = next(_launchers(), None)
    raise BackendUnavailable(
        f"{by or 'the launcher'} was to start {started} ranks, and {_loaded()}, which mpi4py has loaded, sees {size}",
        f"start them by the mpiexec that belongs to this library, or set {LIBRARY} to the one of that launcher",
    )


def _lacks_pmi() -> str | None:
    """How to ask for PMI the scheduler that has started this process without; None where that is not so."""
    has = any(name in os.environ for name in ("PMI_RANK", "PMI_CONTROL_PORT", "PMIX_RANK"))
    return None if has else _WITH_PMI.get(_told() or "")


def pmi_is_needed() -> str:
    """The fix where a launcher that is not known starts ranks each of which is alone."""
    return f"let the launcher give them PMI, as {' and '.join(_WITH_PMI.values())} do"


def _loaded() -> str:
    """The libmpi that this process has loaded."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    found = (line.split(maxsplit=5)[5] for line in lines if re.search(r"/libmpi(ch)?\.so[^/]*$", line))
    return next(found, "the library")
