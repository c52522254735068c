"""Finds out whether a driver of OpenCL can launch kernels, in a process of its own, since PoCL may abort over that.

`python -m py_backends.backend._opencl_launch PLATFORM` launches one.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from functools import cache

from py_backends.backend import _opencl_drivers
from py_backends.errors import BackendUnavailable
from py_backends.system import interpreter, surroundings

EMPTY = "kernel void nothing(void) {}"
"""The source of a kernel that does nothing."""
_POCL = "Portable Computing Language"
_WITHIN = 60.0
"""Seconds that a driver may take for its first kernel."""


def check(platform: str) -> None:
    """Raise BackendUnavailable where a platform's driver would end the process that builds or launches a kernel.

    PoCL does where it cannot keep what it compiles, or not load it, and without the linker `ld`, if it was built so.
    """
    if platform != _POCL:
        return
    if why := _opencl_drivers.why_pocl_would_abort():
        raise BackendUnavailable(
            f"PoCL would end the process, as it cannot keep its kernels: {why}",
            "set POCL_CACHE_DIR to a folder that has room, and from which libraries can be loaded",
        )
    if shutil.which("ld") is None and not _can_launch(platform):
        raise BackendUnavailable("its driver needs the linker ld to launch kernels", "install binutils, which has it")


@cache
def _can_launch(platform: str) -> bool:
    """Whether a process survives it. Other failures have words of their own, and show later."""
    command = interpreter.command(__name__, platform)
    with tempfile.TemporaryDirectory() as empty:  # from its own cache PoCL would launch what it has linked before
        environment = surroundings.environment({"POCL_CACHE_DIR": empty})
        try:
            run = subprocess.run(command, env=environment, capture_output=True, timeout=_WITHIN, check=False)
        except subprocess.TimeoutExpired:
            return False
    return run.returncode >= 0


def main() -> None:
    """Launch it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # nobody needs the memory of a process that is meant to fail
    _opencl_drivers.find()
    import pyopencl as cl

    platform = next(each for each in cl.get_platforms() if each.name == sys.argv[1])
    context = cl.Context(platform.get_devices())
    program = cl.Program(context, EMPTY).build(cache_dir=False)
    queue = cl.CommandQueue(context)
    cl.enqueue_nd_range_kernel(queue, cl.Kernel(program, "nothing"), (1,), None)
    queue.finish()
    os._exit(0)  # whatever the driver does at the interpreter's end


if __name__ == "__main__":
    main()
