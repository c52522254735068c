"""Which targets this process can use: some need variables with which it was started."""

from __future__ import annotations

import os

from py_backends.contract import Target

_AT_START = dict(os.environ)
"""Variables set later may come too late for a library that reads them when it is loaded."""


def has_variables_of(target: Target) -> bool:
    """Whether this process was started with the variables that a target needs."""
    return target.environment.items() <= _AT_START.items()


def usable(target: Target) -> Target:
    """The target, or a missing one if this process was started without the variables that it needs."""
    if target.available and not has_variables_of(target):
        needed = " ".join(f"{name}={value}" for name, value in target.environment.items())
        reason = target.reason or f"it needs a process that was started with {needed}"
        return Target.missing(target.name, reason, target.fix or f"set {needed} and start Python", target.dtypes)
    return target
