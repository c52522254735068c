"""One computation in every parallel programming model that Python can reach."""

from pathlib import Path as _Path
from pkgutil import extend_path as _extend_path

# The package may lie in two places at once: run from a clone, its modules come from there and the
# compiled ones from wherever they were installed. The clone's kernels/ stand beside the package.
__path__ = _extend_path(__path__, __name__)
_clone = _Path(__file__).parent.parent
if (_clone / "kernels").is_dir() and (_clone / "CMakeLists.txt").is_file():
    __path__.insert(1, str(_clone))
