"""Messages between the harness and a worker: JSON, with file descriptors beside it.

A Unix socket of the type SEQPACKET keeps messages apart, and ends when either process ends. So the harness notices at
once that a worker died, and a worker ends with its harness.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Sequence
from typing import Any

_LARGEST_PACKET = 64 * 1024
"""Bytes that a socket takes at once whatever the system's limits are. What 4,096 ranks tell is four times as long. A
message is several packets then, of which all but the last are full."""
_MOST_DESCRIPTORS = 16


class Channel:
    """One end of the connection."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._begun: list[bytes] = []
        """The packets so far of a message that is coming. An interrupted wait for the others may be taken up again."""

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
        data = json.dumps(message).encode()
        if len(data) % _LARGEST_PACKET == 0:
            data += b" "  # the last packet is not full
        for first in range(0, len(data), _LARGEST_PACKET):
            socket.send_fds(self._socket, [data[first : first + _LARGEST_PACKET]], () if first else descriptors)

    def receive(self) -> tuple[dict[str, Any], list[int]] | None:
        """Wait for the next message, and return it with its descriptors; None if the other end is gone.

        Raises OSError if this process may not open as many files as came with it.
        """
        descriptors: list[int] = []
        lost = False
        while True:
            try:
                packet, came, flags, _ = socket.recv_fds(self._socket, _LARGEST_PACKET, _MOST_DESCRIPTORS)
            except ConnectionResetError:
                return None
            if not packet:
                return None
            self._begun.append(packet)
            descriptors += came
            lost = lost or bool(flags & socket.MSG_CTRUNC)
            if len(packet) < _LARGEST_PACKET:
                break
        data, self._begun = b"".join(self._begun), []
        if lost:
            for each in descriptors:
                os.close(each)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return json.loads(data), descriptors

    def close(self) -> None:
        self._socket.close()
