"""The old name of `py_backends.backend.formats.numba_cuda`, which kernels of plug-ins may import."""

from py_backends.backend.formats.numba_cuda import *  # noqa: F403  # whatever it has
