"""Messages between the harness and a worker: JSON, with file descriptors beside it.

A Unix socket of the type SEQPACKET keeps messages apart, and ends when either process ends. So the harness notices at
once that a worker died, and a worker ends with its harness.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import Any

_LARGEST_MESSAGE = 64 * 1024
_MOST_DESCRIPTORS = 16


class Channel:
    """One end of the connection."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        """Both ends of a new connection."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(ours), cls(theirs)

    @classmethod
    def from_descriptor(cls, descriptor: int) -> Channel:
        """The end that a parent process left open as this descriptor."""
        return cls(socket.socket(fileno=descriptor))

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Send one message. Raises BrokenPipeError or ConnectionError if the other end is gone."""
        socket.send_fds(self._socket, [json.dumps(message).encode()], descriptors)

    def receive(self) -> tuple[dict[str, Any], list[int]] | None:
        """Wait for the next message, and return it with its descriptors; None if the other end is gone."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._socket, _LARGEST_MESSAGE, _MOST_DESCRIPTORS)
        except ConnectionResetError:
            return None
        return (json.loads(data), descriptors) if data else None

    def close(self) -> None:
        self._socket.close()
