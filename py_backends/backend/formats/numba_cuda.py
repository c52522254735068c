"""Number formats for sources in Numba for GPUs: `widen` and `narrow`, as `numba_cpu` has them for CPUs.

For a GPU they are compiled. The simulator interprets them, one NumPy number at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config

from py_backends.backend._numba import meant_dtype
from py_backends.backend.formats.numba_cpu import narrow_by, widen_by

if config.ENABLE_CUDASIM:

    def widen(x: Any) -> Any:
        """An element as Sum."""
        number = x.view(meant_dtype(x.dtype))
        return number if number.itemsize > 2 else number.astype(np.int32 if x.dtype == np.int8 else np.float32)

    def narrow(x: Any, dtype: np.dtype[Any]) -> Any:
        """The element of an array's dtype nearest to a Sum."""
        return x.astype(meant_dtype(dtype)).view(dtype)

else:
    from numba.cuda.extending import intrinsic

    # GPUs have instructions for float16.
    widen, narrow = intrinsic(widen_by(converts=True)), intrinsic(narrow_by(converts=True))
