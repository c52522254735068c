"""C++ in one thread without intrinsics: plain loops, as the compiler optimises them."""

from __future__ import annotations

from py_backends.backend import _cpu_kernels


class Backend(_cpu_kernels.Backend):
    module = "cpp"
    parallel = False
    preference = 2
