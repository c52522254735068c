"""What pytest loads wherever py-backends is installed: nothing, unless it is asked for the suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_SUITE = "py_backends.conformance"


def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Load the plug-in where an argument names the suite, and change nobody else's run."""
    if any(_SUITE in argument for argument in args):
        early_config.pluginmanager.import_plugin(f"{_SUITE}.plugin")
