"""How a worker answers the requests of the harness.

A request is `{"do": method, ...arguments}`. Its answer is the method's result, or `{"failed": status, "reason": ...}`,
with the status of the row.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import traceback
from typing import Any

from py_backends import registry
from py_backends.errors import BackendUnavailable, KernelFault, WrongResult, fix_of
from py_backends.system.channel import Channel
from py_backends.system.lifetimes import end_with_parent
from py_backends.wording import in_one_line

_LONGEST_REASON, _MOST_LINES = 1000, 4


def serve(session: object) -> None:
    """Answer requests by the session's methods, until the harness closes its end of the channel.

    A method takes the descriptors of the request, and its arguments by name. It returns a JSON object.
    """
    end_with_parent()
    if folder := sys.argv[2:]:
        _use(*folder)
    os.register_at_fork(after_in_child=end_with_parent)  # forks of a kernel or driver must not outlive us
    channel, served_by = Channel.from_descriptor(int(sys.argv[1])), os.getpid()
    while True:
        try:
            if (received := channel.receive()) is None:
                return
        except OSError as error:
            answer = _failed(error)
        else:
            answer = _answer(session, *received)
        if os.getpid() != served_by:  # a kernel forked, and this is the child, which returned too
            os._exit(0)
        channel.send(answer)


def _answer(session: object, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
    method = getattr(session, request.pop("do"))
    try:
        answer: dict[str, Any] = method(descriptors, **request)
    except BackendUnavailable as unavailable:
        return {"failed": "unavailable", "reason": unavailable.reason, "fix": unavailable.fix}
    except MemoryError as error:
        return {"failed": "skipped", "reason": str(error) or "out of memory"}
    except KernelFault as fault:
        return {"failed": "crashed", "reason": _shortened(str(fault))}
    except WrongResult as wrong:
        return {"failed": "mismatch", "reason": _shortened(str(wrong))}
    except Exception as error:  # noqa: BLE001  # any error of a kernel or driver belongs in its row
        traceback.print_exc()
        return _failed(error)
    return answer


def _failed(error: Exception) -> dict[str, Any]:
    reason = _shortened(f"{type(error).__name__}: {error}") + registry.place(error)
    return {"failed": "error", "reason": reason, "fix": fix_of(error)}


def _shortened(text: str) -> str:
    """A message as the reason of a row."""
    return in_one_line(text, _MOST_LINES)[:_LONGEST_REASON]


def _use(folder: str) -> None:
    """Let libraries have their temporary files in a folder, which the harness removes: a killed one leaves them.

    Python's own stay where they were: what is kept there is for later processes too.
    """
    with contextlib.suppress(OSError):  # there is no other place
        tempfile.gettempdir()
    os.environ["TMPDIR"] = folder
