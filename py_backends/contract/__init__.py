"""What plug-ins are made of: a backend from `Backend`, `Device` and `Target`, a kernel from `Problem` and `Reference`.

All of it stays as it is within a major version. (A package of one file: a module here would be a backend.)
"""

from py_backends._contract import (
    Adopted,
    Array,
    Backend,
    BackendUnavailable,
    Buffer,
    Device,
    HostDevice,
    KernelFault,
    KernelText,
    Ladder,
    Launch,
    Problem,
    Reference,
    Rung,
    Stages,
    Target,
    WorkItems,
)

__all__ = [
    "Adopted",
    "Array",
    "Backend",
    "BackendUnavailable",
    "Buffer",
    "Device",
    "HostDevice",
    "KernelFault",
    "KernelText",
    "Ladder",
    "Launch",
    "Problem",
    "Reference",
    "Rung",
    "Stages",
    "Target",
    "WorkItems",
]
