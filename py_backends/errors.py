"""The errors of a request. Each says in one line what is wrong, and what to do."""

from __future__ import annotations

import errno

MOST_FILES = 4096
"""Descriptors that are enough for a comparison of any size."""


class WithFix(Exception):
    """An error that says why, and how to fix it: `reason`, and `fix` if there is one."""

    def __init__(self, reason: str, fix: str | None = None) -> None:
        super().__init__(f"{reason}; {fix}" if fix else reason)
        self.reason = reason
        self.fix = fix


class BackendUnavailable(WithFix, RuntimeError):
    """A backend or target is not available. Says why, and how to get it."""


class WrongRequest(ValueError):
    """An invalid request: an unknown name, or an impossible size or number."""


class BrokenKernel(WithFix, WrongRequest):
    """A package declares a kernel and does not contain a valid one. Says why, and how to fix it."""


class KernelFault(RuntimeError):
    """A kernel did what its device forbids, such as reading past an array: the device may be of no more use."""


class WrongResult(RuntimeError):
    """A kernel gave results that cannot be compared with the right ones, such as arrays of another shape."""


def fix_of(error: BaseException) -> str | None:
    """What the user can do about an error of the system, where its own words do not say it."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return f"raise the limit of open files: ulimit -n {MOST_FILES}"
    return None
