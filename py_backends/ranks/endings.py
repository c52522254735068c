"""How a keeper learns which rank ends first: each rank is connected to it, and Linux closes what a dead process had.

The launcher learns of an end in the same way, and then kills the other ranks. So the keeper has to hear before it.
"""

from __future__ import annotations

import fcntl
import os
import resource
import socket
from pathlib import Path

_SOCKET = "endings"
_HIGHEST = 1023
"""Linux keeps a table of a process's descriptors, as long as the highest of them."""


def listen(folder: Path) -> socket.socket:
    """The keeper's end, to which the ranks on this machine connect."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(folder / _SOCKET))
    listener.listen()
    return listener


def accept(listener: socket.socket) -> tuple[int, int | None]:
    """The descriptor of a connection, which can be read once its rank has ended, and the rank.

    The rank is None if it ended before it could say which it is.
    """
    connection, _ = listener.accept()
    said = connection.recv(16)
    return connection.detach(), int(said) if said else None


def connect(folder: Path, rank: int) -> None:
    """Connect this rank to its keeper until it ends, unless the keeper is on another machine, which may share a folder.

    Some versions of Linux close the lowest descriptor first, and others the highest. The launcher's connection is one
    in the middle. So there are two connections: the lowest takes the place of standard input.
    """
    highest = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 1, _HIGHEST)
    for descriptor in (0, highest):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.connect(str(folder / _SOCKET))
        except (FileNotFoundError, ConnectionRefusedError):
            return
        connection.send(str(rank).encode())
        connection.shutdown(socket.SHUT_RD)  # who reads standard input finds its end
        if descriptor:
            fcntl.fcntl(connection, fcntl.F_DUPFD_CLOEXEC, descriptor)
        else:
            os.dup2(connection.fileno(), descriptor)
        connection.close()
