"""What ranks send arrives, or they do not start: also where something refuses that the system copies it.

A filter of system calls (seccomp(2)) stands for a sandbox. With one, MPICH 5.0.2 exchanged messages from 8 KiB on
without an error, and without the data.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest
from commands import Finished, run_python

from py_backends.ranks import messages

pytestmark = pytest.mark.mpi

PROCESS_VM_READV = {"x86_64": 310, "aarch64": 270}.get(os.uname().machine)
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
REFUSING = """
import ctypes, os, struct, sys
number, error, *command = sys.argv[1:]
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
steps = [(LOAD_NUMBER, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, int(number)), (RETURN, 0, 0, FAIL | int(error)),
         (RETURN, 0, 0, ALLOW)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program)))
prctl, NO_NEW_PRIVILEGES, SECCOMP, BY_FILTER = ctypes.CDLL(None).prctl, 38, 22, 2
assert prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
assert prctl(SECCOMP, BY_FILTER, filter, 0, 0) == 0
os.execvp(command[0], command)
"""
SUM = """
import numpy as np
import py_backends as pb
a, b = np.random.default_rng(1).random((2, 100_000), np.float32)
print((pb.vecadd(a, b, backend="mpi", target="2x1") == a + b).all())
"""


def where_refused(error: int, *command: str) -> Finished:
    """Run a command where process_vm_readv(2) fails with an error."""
    if PROCESS_VM_READV is None:
        pytest.skip(f"PROCESS_VM_READV lacks the number of this system call on {os.uname().machine}")
    return run_python("-c", REFUSING, str(PROCESS_VM_READV), str(error), *command)


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS], ids=errno.errorcode.get)
def test_large_messages_arrive_where_the_system_may_not_copy_them(error: int) -> None:
    """A container refuses it; an emulator does not have it. Half of the result was what the memory held before."""
    finished = where_refused(error, sys.executable, "-c", SUM)
    assert (finished.stdout, finished.stderr) == ("True\n", "")


def test_ranks_whose_messages_do_not_arrive_do_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sets the variable that was not needed here decides; and other libraries have other variables."""
    if YAMA.exists() and YAMA.read_text().strip() != "0":
        pytest.skip(f"MPICH avoids these copies here (to change that: echo 0 | sudo tee {YAMA})")
    monkeypatch.setenv(messages.BY_THE_SYSTEM, "1")
    finished = where_refused(errno.EPERM, sys.executable, "-c", SUM)
    assert finished.returncode == 1
    assert "BackendUnavailable: " in finished.stderr
    assert "1,048,576 bytes" in finished.stderr


def test_only_a_refusal_makes_messages_take_the_longer_way() -> None:
    script = "from py_backends.ranks import messages; print(messages._copies())"
    if run_python("-c", script).stdout != "True\n":
        pytest.skip("this system refuses process_vm_readv itself: run this outside of its sandbox")
    assert where_refused(errno.EPERM, sys.executable, "-c", script).stdout == "False\n"
