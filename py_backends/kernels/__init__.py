"""The kernels. In a clone they lie in its folder kernels/, and in a wheel here."""

from __future__ import annotations

from pathlib import Path

_clone = Path(__file__).parents[2]
if (_clone / "kernels").is_dir() and (_clone / "CMakeLists.txt").is_file():
    __path__ = [str(_clone / "kernels")]
