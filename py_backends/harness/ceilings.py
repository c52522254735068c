"""The old name of `py_backends.workers.ceilings`, which scripts of users may import."""

from py_backends.workers.ceilings import *  # noqa: F403  # whatever it has
