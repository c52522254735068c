"""The old name of `py_backends.results.report`, which scripts of users may import."""

from py_backends.results.report import *  # noqa: F403  # whatever it has
