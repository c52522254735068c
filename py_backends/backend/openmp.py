"""OpenMP: directives that divide loops among threads, which share memory."""

from __future__ import annotations

from py_backends.backend import _cpu_kernels


class Backend(_cpu_kernels.Backend):
    module = "openmp"
    parallel = True
    preference = 3
