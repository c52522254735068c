"""Python in a home folder of its own, mounted as administrators and quotas leave them: small, or `noexec`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from commands import CLONE, LONGEST, environment

_IN_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
_MOUNTED = 'mount -t tmpfs -o "$0" none "$HOME" && exec "$@"'


@cache
def _refusal() -> str | None:
    """Why nothing can be mounted for a process alone; None where it can. It takes no root where users may do it."""
    if shutil.which("unshare") is None:
        return "there is no unshare"
    run = subprocess.run([*_IN_NAMESPACE, "mount -t tmpfs none /mnt"], capture_output=True, text=True, check=False)
    return f"nothing can be mounted here: {run.stderr.strip()}" if run.returncode else None


def python_at_home(home: Path, options: str, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script whose home is a tmpfs of these options, such as `size=1m` or `noexec`."""
    if reason := _refusal():
        pytest.skip(reason)
    home.mkdir(exist_ok=True)
    variables = environment(HOME=str(home))
    variables.pop("XDG_CACHE_HOME", None)
    command = [*_IN_NAMESPACE, _MOUNTED, options, sys.executable, "-c", script, *arguments]
    return subprocess.run(
        command, cwd=CLONE, env=variables, capture_output=True, text=True, timeout=LONGEST, check=False
    )
