"""The part of `cuda.tile` that the kernels use, on NumPy: it takes the place of that module in a worker.

It shows that a source is right as we read the language (https://docs.nvidia.com/cuda/cutile-python). It does not show
what NVIDIA's compiler makes of it. What the language leaves undefined is a fault here: a tile that lies wholly outside
of its array. Padding that a kernel does not define is poison.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import ml_dtypes
import numpy as np

from py_backends.number_formats import number_format

Tile = Any
"""A NumPy array, or a number, which is a tile without dimensions."""

float16, float32, float64, bfloat16 = (
    np.dtype(each) for each in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)
)
int8, int32, int64 = (np.dtype(each) for each in (np.int8, np.int32, np.int64))


class PaddingMode(Enum):
    """What a tile has past the end of its array."""

    UNDETERMINED = None
    ZERO = 0.0
    NEG_INF = -math.inf


class Array:
    """An argument of a kernel: memory of one shape, which only `load`, `store` and their like reach."""

    def __init__(self, memory: np.ndarray[Any, Any]) -> None:
        self.memory, self.shape, self.dtype, self.ndim = memory, memory.shape, memory.dtype, memory.ndim


class Constant:
    """Annotates a parameter that the compiler knows, as in `size: Constant[int]`. Here all are as good as known."""

    def __class_getitem__(cls, _: type) -> type[Constant]:
        return cls


class _Block:
    """The one that runs."""

    at: tuple[int, ...] = ()
    grid: tuple[int, ...] = ()


def kernel(function: Any = None, /, **_: Any) -> Any:
    """Mark a function as a kernel. Options for the compiler mean nothing here."""
    return function if function is not None else kernel


def launch(grid: Sequence[int], function: Callable[..., None], arguments: Sequence[Any]) -> None:
    """Run the blocks of a grid one after the other, the last one first: none may need another."""
    _Block.grid = (*grid, 1, 1)[:3]
    for at in itertools.product(*(range(count - 1, -1, -1) for count in _Block.grid)):
        _Block.at = at
        function(*arguments)


def bid(axis: int) -> Any:
    """The place of the block in the grid."""
    return np.int32(_Block.at[axis])


def _powers_of_two(shape: Sequence[int]) -> None:
    if any(side < 1 or side & (side - 1) for side in shape):
        raise ValueError(f"the sides of a tile are powers of two, not {tuple(shape)}")


def _tuple(index: Any) -> tuple[Any, ...]:
    return tuple(index) if isinstance(index, tuple | list) else (index,)


def num_tiles(array: Array, /, axis: int, shape: Any) -> int:
    """How many tiles of that shape an array has along an axis."""
    return int(-(-array.shape[axis] // _tuple(shape)[axis]))


def _place(array: Array, index: Any, shape: Sequence[int]) -> tuple[slice, ...]:
    """Where a tile lies in an array. IndexError where that is wholly outside, which the language leaves undefined."""
    _powers_of_two(shape)
    if len(shape) != array.ndim or len(_tuple(index)) != array.ndim:
        raise ValueError(f"a tile of {len(shape)} dimensions at {index} of an array of {array.ndim}")
    first = [int(at) * side for at, side in zip(_tuple(index), shape, strict=True)]
    if any(not 0 <= begin < length for begin, length in zip(first, array.shape, strict=True)):
        raise IndexError(f"the tile at {tuple(map(int, _tuple(index)))} lies outside of an array {array.shape}")
    return tuple(slice(begin, begin + side) for begin, side in zip(first, shape, strict=True))


def load(array: Array, /, index: Any, shape: Any, *, padding_mode: PaddingMode = PaddingMode.UNDETERMINED) -> Tile:
    """The tile at an index. Past the end of the array it has its padding, or poison where the kernel says none."""
    shape = _tuple(shape)
    place = _place(array, index, shape)
    padding = number_format(array.dtype).poison if padding_mode.value is None else padding_mode.value
    tile = np.full(shape, padding, array.dtype)
    there = array.memory[place]
    tile[tuple(map(slice, there.shape))] = there
    return tile


def store(array: Array, /, index: Any, tile: Tile) -> None:
    """Store a tile at an index. What lies past the end of the array is left out."""
    tile = np.asarray(tile)
    if tile.dtype != array.dtype:
        raise TypeError(f"a tile of {tile.dtype} is stored to an array of {array.dtype}")
    there = array.memory[_place(array, index, tile.shape)]
    there[...] = tile[tuple(map(slice, there.shape))]


def gather(array: Array, indices: Any, /, *, mask: Any = True, padding_value: Any = 0) -> Tile:
    """The elements at some indices. Those outside of the array, and where the mask is false, have the padding."""
    at = np.broadcast_arrays(*_tuple(indices))
    inside = np.logical_and.reduce([(each >= 0) & (each < n) for each, n in zip(at, array.shape, strict=True)])
    inside = inside & mask
    tile = np.full(inside.shape, padding_value, array.dtype)
    tile[inside] = array.memory[tuple(each[inside] for each in at)]
    return tile


def scatter(array: Array, indices: Any, value: Tile, /, *, mask: Any = True) -> None:
    """Store elements at some indices, but those outside of the array, and where the mask is false."""
    if np.asarray(value).dtype != array.dtype:
        raise TypeError(f"a tile of {np.asarray(value).dtype} is stored to an array of {array.dtype}")
    at = np.broadcast_arrays(*_tuple(indices))
    inside = np.logical_and.reduce([(each >= 0) & (each < n) for each, n in zip(at, array.shape, strict=True)])
    inside = inside & mask
    array.memory[tuple(each[inside] for each in at)] = np.broadcast_to(value, inside.shape)[inside]


def atomic_add(array: Array, indices: Any, update: Any, /) -> Tile:
    """Add to the elements at some indices, but those outside of the array. One index may stand there several times.

    Gives what was there before; at an index that stands there several times, before any of them.
    """
    at = np.broadcast_arrays(*_tuple(indices))
    inside = np.logical_and.reduce([(each >= 0) & (each < n) for each, n in zip(at, array.shape, strict=True)])
    if not isinstance(update, int | float) and np.asarray(update).dtype != array.dtype:
        raise TypeError(f"a tile of {np.asarray(update).dtype} is added to an array of {array.dtype}")
    before = np.zeros(inside.shape, array.dtype)
    place = tuple(each[inside] for each in at)
    before[inside] = array.memory[place]
    np.add.at(array.memory, place, np.broadcast_to(np.asarray(update, array.dtype), inside.shape)[inside])
    return before


def full(shape: Any, fill_value: Any, dtype: Any) -> Tile:
    """A tile of one number."""
    _powers_of_two(_tuple(shape))
    return np.full(_tuple(shape), fill_value, dtype)


def arange(size: int, /, *, dtype: Any) -> Tile:
    """Whole numbers from 0."""
    _powers_of_two((size,))
    return np.arange(size, dtype=dtype)


def astype(x: Tile, dtype: Any, /) -> Tile:
    """A tile in another format."""
    return np.asarray(x).astype(dtype)


def mma(x: Tile, y: Tile, /, acc: Tile) -> Tile:
    """The sum of x y and acc, with products and sums in acc's format."""
    if x.dtype != y.dtype or x.ndim != 2 or y.ndim != 2:
        raise TypeError(f"a product of tiles of {x.dtype} {x.shape} and {y.dtype} {y.shape}")
    made: Tile = (np.matmul(x.astype(acc.dtype), y.astype(acc.dtype)) + acc).astype(acc.dtype)
    return made


def cdiv(x: Any, y: Any, /) -> Any:
    """A quotient of whole numbers, rounded up."""
    return -(-x // y)


def transpose(x: Tile, /) -> Tile:
    """Rows in place of columns."""
    return np.asarray(x).T


def sum(x: Tile, /, axis: int | None = None, *, keepdims: bool = False) -> Tile:  # noqa: A001  # its name in cuda.tile
    """The sum, in x's format."""
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def cumsum(x: Tile, /, axis: int = 0) -> Tile:
    """The sums of each element and all before it, in x's format."""
    return np.cumsum(x, axis=axis, dtype=x.dtype)


def max(x: Tile, /, axis: int | None = None, *, keepdims: bool = False) -> Tile:  # noqa: A001  # its name in cuda.tile
    """The largest number; not NaN, unless all are."""
    largest: Tile = np.asarray(np.fmax.reduce(x, axis=axis, keepdims=keepdims))  # type: ignore[call-overload]  # of keepdims
    return largest


maximum, minimum, where = np.fmax, np.fmin, np.where
exp, exp2, sqrt = np.exp, np.exp2, np.sqrt
