#!/usr/bin/env bash
# repair_wheel.sh WHEEL FOLDER: write into FOLDER a wheel that runs on other machines, and check it. It contains
# OpenMP's library, but not the SYCL runtime: dpctl and the wheel have to use the same one, from the extra `sycl`. Nor
# does it contain oneTBB, which Numba and MKL use in the same process. It comes with the extra `stdpar`.
set -euo pipefail
auditwheel repair --exclude 'libsycl.so.*' --exclude 'libtbb.so.*' --wheel-dir "$2" "$1"
"${PYTHON:-python3}" "$(dirname "$0")/check_wheel.py" "$2"/*.whl
