"""What pytest loads wherever py-backends is installed. It loads the suite only if it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_SUITE = "py_backends.conformance"


def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Load the plug-in if an argument names the suite. Other runs of pytest are left alone."""
    if any(_SUITE in argument for argument in args):
        early_config.pluginmanager.import_plugin(f"{_SUITE}.plugin")
