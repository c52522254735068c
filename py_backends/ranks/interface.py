"""MPI, by the library of the launcher that started this process. Importing this makes the process a rank."""

from py_backends.ranks import launcher, messages

launcher.use_its_library()
messages.avoid_refused_copies()

from mpi4py import MPI  # noqa: E402  # it loads the library that was chosen

__all__ = ["MPI"]
