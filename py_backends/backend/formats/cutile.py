"""Number formats for sources in cuTile: tiles of any format, computed in that of sums.

Without annotations: the compiler would look for their names.
"""

from __future__ import annotations

import cuda.tile as ct


def widen(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """A tile in the format of sums of its elements."""
    if x.dtype == ct.float16 or x.dtype == ct.bfloat16:  # noqa: PLR1714  # the compiler knows no `in`
        return ct.astype(x, ct.float32)
    elif x.dtype == ct.int8:  # noqa: RET505  # what follows a return would be compiled too
        return ct.astype(x, ct.int32)
    else:
        return x
