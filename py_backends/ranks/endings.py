"""How a keeper learns which rank ends first: each rank is connected to it, and Linux closes what a dying process had.

The launcher learns of an end in the same way, and then kills the other ranks. So the keeper has to hear before it.
"""

from __future__ import annotations

import contextlib
import fcntl
import resource
import socket
import struct
from pathlib import Path

from py_backends.ranks import ENDINGS

_HIGHEST = 1023
"""Linux keeps a table of a process's descriptors, as long as the highest of them."""
_CREDENTIALS = struct.Struct("3i")
"""The `struct ucred` of unix(7): process, user and group."""


def listen(folder: Path) -> socket.socket:
    """The keeper's end, to which the ranks on this machine connect."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(folder / ENDINGS))
    listener.listen()
    return listener


def accept(listener: socket.socket) -> tuple[socket.socket, int, int]:
    """A connection, which can be read once its rank has ended; the rank's process, and its number."""
    connection, name = listener.accept()
    process, _ = other_end(connection)
    return connection, process, int(name.rpartition(b" ")[2])


def other_end(connection: socket.socket) -> tuple[int, int]:
    """The process and the user at the other end."""
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(told)
    return process, user


def confirm(connection: socket.socket) -> None:
    """Tell a rank that its end is watched for: it waits for this."""
    with contextlib.suppress(OSError):  # it has ended
        connection.send(b".")


def connect(folder: Path, rank: int) -> None:
    """Connect this rank to its keeper until it ends. Does nothing if the keeper is on another machine.

    Linux closes the files of a dying process from the highest descriptor down, which a test measures. So the connection
    has the highest.
    """
    highest = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 1, _HIGHEST)
    # Without the connection, the end of a rank is still seen by its launcher.
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection, contextlib.suppress(OSError):
        connection.bind(f"\0{folder} {rank}")  # an abstract name (unix(7)), which tells the rank
        connection.connect(str(folder / ENDINGS))
        connection.recv(1)  # a rank that ended before it was watched would be told too late
        fcntl.fcntl(connection, fcntl.F_DUPFD_CLOEXEC, highest)
