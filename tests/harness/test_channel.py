"""Messages between processes come whole, however long they are, each with its own descriptors."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from py_backends.system.channel import _LARGEST_PACKET, Channel


def sent(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages as they come at the other end. Its reader is another thread: a socket holds some packets only."""
    ours, theirs = Channel.pair()
    with ThreadPoolExecutor(1) as reader:
        coming = [reader.submit(theirs.receive) for _ in messages]
        for message in messages:
            ours.send(message)
        came = [each.result(timeout=60) for each in coming]
    ours.close()
    assert theirs.receive() is None
    theirs.close()
    return [each[0] for each in came if each]


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_messages_around_full_packets_come_whole(size: int, more: int) -> None:
    empty = len('{"text": ""}')
    long = {"text": "x" * (size * _LARGEST_PACKET + more - empty)}
    assert sent(long, {"next": 1}, long) == [long, {"next": 1}, long]


def test_the_answer_of_the_most_ranks_comes_whole() -> None:
    seconds = [number / 7e6 for number in range(1, 4097)]
    answer = {"kernel": seconds, "communicating": seconds, "sent": [10**12] * 4096}
    assert sent(answer) == [answer]


def test_descriptors_come_once_with_a_long_message() -> None:
    ours, theirs = Channel.pair()
    long = {"text": "x" * _LARGEST_PACKET}
    ours.send(long, [0])
    ours.send({})
    message, (descriptor,) = theirs.receive() or ({}, [-1])
    assert message == long
    os.close(descriptor)
    assert theirs.receive() == ({}, [])
    ours.close()
    theirs.close()


def test_what_ends_within_a_message_has_left() -> None:
    """A process was killed while it sent: what came of the message is none."""
    ours, theirs = Channel.pair()
    ours._socket.send(b"{" + b" " * (_LARGEST_PACKET - 1))
    ours.close()
    assert theirs.receive() is None
    theirs.close()


def test_an_interrupted_wait_is_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C in the middle of an answer: the rest of it must not be taken for the next one."""
    ours, theirs = Channel.pair()
    long = {"text": "x" * _LARGEST_PACKET}
    ours.send(long)
    receive, calls = Channel.receive.__globals__["socket"].recv_fds, []

    def interrupted(*how: Any) -> Any:
        calls.append(how)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return receive(*how)

    monkeypatch.setattr("py_backends.system.channel.socket.recv_fds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        theirs.receive()
    assert theirs.receive() == (long, [])
    ours.close()
    theirs.close()
