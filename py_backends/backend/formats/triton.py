"""Number formats for sources in Triton: tiles of any format, computed in that of sums.

Without annotations: the compiler would look for their names.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def widen(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """A tile in the format of sums of its elements."""
    if x.dtype == tl.float16 or x.dtype == tl.bfloat16:  # noqa: PLR1714  # the compiler knows no `in`
        return x.to(tl.float32)
    elif x.dtype == tl.int8:  # noqa: RET505  # what follows a return would be compiled too
        return x.to(tl.int32)
    else:
        return x
