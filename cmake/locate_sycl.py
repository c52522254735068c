"""Print the SYCL runtime's library, then the folders of its and dpctl's headers, separated by semicolons.

Where something is missing, one line on standard error says what, and the exit code is 1.
"""

import importlib.metadata
import sys
from pathlib import Path


def runtime_files() -> list[Path]:
    """The files of the SYCL runtime, from its distribution; else where Conda would have put them."""
    prefix = Path(sys.prefix)
    usual = [prefix / "lib" / "libsycl.so", prefix / "include" / "sycl" / "sycl.hpp"]
    try:
        recorded = importlib.metadata.files("intel-sycl-rt") or []
    except importlib.metadata.PackageNotFoundError:
        recorded = []
    return [Path(str(file.locate())).resolve() for file in recorded if file.name in ("libsycl.so", "sycl.hpp")] + usual


def main() -> None:
    """Print what was found."""
    try:
        import dpctl
    except ImportError as error:
        sys.exit(f"dpctl could not be imported ({error})")
    there = [path for path in runtime_files() if path.exists()]
    libraries = [path for path in there if path.name == "libsycl.so"]
    headers = [path.parent.parent for path in there if path.match("include/sycl/sycl.hpp")]
    if not libraries or not headers:
        sys.exit("the SYCL runtime had no libsycl.so or no sycl/sycl.hpp")
    print(libraries[0], headers[0], dpctl.get_include(), sep=";")


if __name__ == "__main__":
    main()
