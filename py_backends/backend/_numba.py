"""What the two Numba backends share: whether Numba is there."""

from __future__ import annotations

import importlib
from types import ModuleType

from py_backends.errors import BackendUnavailable
from py_backends.install import pip_install


def load(extra: str) -> ModuleType:
    """Numba itself; BackendUnavailable where it is missing or does not fit the rest of the environment."""
    fix = pip_install(extra)
    try:
        return importlib.import_module("numba")
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise BackendUnavailable(f"Numba does not import: {error}", fix) from error
        raise BackendUnavailable("Numba is not installed", fix) from error
    except ImportError as error:
        raise BackendUnavailable(f"Numba does not import: {error}", fix) from error
