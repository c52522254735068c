"""The old name of `py_backends.workers.probe`, which scripts of users may import."""

from py_backends.workers.probe import *  # noqa: F403  # whatever it has
