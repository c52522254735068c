"""An array that carries its own error: each element is a sum, whose additions may still be done in any order.

A kernel and its reference are two runs of one program, which round differently. `error` is how far they may be apart,
before the additions of the sum itself are counted. These stay open, since (x + y) + z and x + (y + z) cancel
differently: what holds for one order, as Wilkinson's running error does, is wrong for another one. So an element is

    value = a sum of `terms` terms, whose sizes add up to `magnitude`, each rounded `roundings` times or less,
            which differ by `error` in all, and lost up to `losses` times the least number to underflow.

However the kernel adds these terms, fused or not, its sum lies within

    error + gamma(roundings + terms - 1) (magnitude + error) + losses s

of the reference (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, sections 3.1 and 4.2; gamma is
that of both runs, `Precision.gamma`). To *close* a sum makes this its error, and one term of it. Additions, factors
that are the same for all elements, and views keep sums open. Products, functions and assignment close them.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import ml_dtypes
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from py_backends.bounds.precision import Precision, common_step, written_exactly
from py_backends.reference import Array

FIELDS = ("value", "error", "magnitude", "roundings", "terms", "losses", "overflow")
"""Of a `Bounded`, each an array of the same shape, or of length 1 along dimensions in which it is constant."""

METHODS = (
    *("all", "any", "argmax", "argmin", "argsort", "clip", "copy", "cumsum", "diagonal", "dot", "max", "mean", "min"),
    *("nonzero", "prod", "ravel", "repeat", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take"),
    *("trace", "var"),
)
"""Those of arrays that are functions of NumPy too."""

Rule = TypeVar("Rule", bound=Callable[..., Any])

UFUNCS: dict[tuple[np.ufunc, str], Callable[..., Any]] = {}
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}
"""What each universal function, by its method, and each other function of NumPy does to arrays that carry errors."""


@dataclass
class Facts:
    """Of all elements.

    step: a power of two of which all terms are multiples that have no error; 0 where none is known.
    least: below which no element lies, in no run.
    closed: of an array whose elements are assigned, whether each is one term, so that few of its fields are needed.
    """

    step: float = 0.0
    least: float = -np.inf
    closed: bool = False


class Carrier(NDArrayOperatorsMixin):
    """What takes part in NumPy's functions by the rules of this package."""

    precision: Precision

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        targets = options.pop("out", ())
        name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
        result = _by_rule(UFUNCS.get((ufunc, method)), name, inputs, options)
        if not targets:
            return result
        if len(targets) != 1 or not isinstance(targets[0], Bounded):
            raise TypeError(f"the result of {name} has a bound, and goes to an array without: {_MADE_LIKE}")
        targets[0].become(result)
        return targets[0]

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        name = f"{function.__module__.replace('numpy', 'np', 1)}.{function.__name__}"
        if function in MAKERS:
            return fresh(lifted(self, function(*inputs, **options))[1])
        return _by_rule(FUNCTIONS.get(function), name, inputs, options)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"an array without a bound, as np.array() gives, cannot hold one with a bound: {_MADE_LIKE}")

    def __float__(self) -> float:
        raise TypeError(f"a number of Python or NumPy cannot hold one with a bound: {_MADE_LIKE}")

    def __iter__(self) -> Any:
        raise TypeError(f"an iteration over {type(self).__name__} has no bound")


class Bounded(Carrier):
    """An array of open sums: see this module's first lines."""

    value: Array
    error: Array
    magnitude: Array
    roundings: Array
    terms: Array
    losses: Array
    overflow: Array

    def __init__(
        self,
        precision: Precision,
        value: Any,
        error: Any = 0.0,
        magnitude: Any = None,
        *,
        roundings: Any = 0.0,
        terms: Any = 1.0,
        losses: Any = 0.0,
        overflow: Any = False,
        facts: Facts | None = None,
    ) -> None:
        self.precision = precision
        self.value = np.asarray(value, np.float64)
        sizes = sizes_of(self.value) if magnitude is None else magnitude
        for name, given in zip(FIELDS[1:], (error, sizes, roundings, terms, losses, overflow), strict=True):
            field = np.asarray(given, bool if name == "overflow" else np.float64)
            missing = self.value.ndim - field.ndim
            setattr(self, name, field.reshape((1,) * missing + field.shape) if missing else field)
        self.facts = facts or Facts()
        self.writable = False
        """Whether all fields are whole arrays, so that a view of each is one of the same memory."""
        self.fresh = False
        """Whether it was made to be filled, so that a view of it has to be of the same memory."""
        self.is_view = False
        self.views: list[weakref.ref[Bounded]] = []

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the kernel's arithmetic."""
        return self.precision.dtype

    @property
    def T(self) -> Any:  # noqa: N802  # as in NumPy
        return np.transpose(self)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return (self[each] for each in range(len(self)))

    def __repr__(self) -> str:
        return f"Bounded({self.value!r}, within {self.closed().error!r})"

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return partial(getattr(np, name), self)
        if not name.startswith("_") and hasattr(np.ndarray, name):
            raise TypeError(no_bound(f"the method {name} of arrays"))
        raise AttributeError(name)

    def reshape(self, *shape: Any, **options: Any) -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, **options)

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def flatten(self) -> Any:
        return np.ravel(self).copy()

    def astype(self, dtype: Any, **_: Any) -> Any:
        """The same array in a format of real numbers, rounded once if that has fewer digits than the arithmetic.

        In one of whole numbers where no rounding decides them.
        """
        if np.dtype(dtype).kind in "fV":
            return _narrowed(self, np.dtype(dtype)) if _is_narrower(np.dtype(dtype), self.dtype) else shared(self)
        if np.dtype(dtype).kind not in "iub":
            raise TypeError(no_bound(f"the method astype({np.dtype(dtype)}) of arrays"))
        closed = self.closed()
        whole = np.trunc(closed.value)
        if closed.error.any() or closed.overflow.any():
            raise TypeError("rounding decides these whole numbers: they have no bound")
        return whole.astype(dtype)

    def __getitem__(self, index: Any) -> Any:
        return moved(lambda field: field[with_ellipsis(index)], self)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Closes what is assigned, but for a view of the same elements, to which something was added."""
        self.make_writable()
        index = with_ellipsis(index)
        if isinstance(value, Bounded) and value.writable and _same_memory(value.value, self.value[index]):
            return
        closed = lifted(self, value)[1].closed()
        self.facts.step = min(self.facts.step, closed.facts.step)
        self.facts.least = min(self.facts.least, closed.facts.least)
        for name in FIELDS:
            getattr(self, name)[index] = _without_extra(getattr(closed, name), getattr(self, name)[index].ndim)

    def become(self, result: Any) -> None:
        """Take the place of this array's elements, as `x += y` does: sums stay open."""
        result = result if isinstance(result, Bounded) else lifted(self, result)[1]
        if not self.writable and not self.has_views():
            if result.shape != self.shape:
                raise ValueError(f"non-broadcastable output operand with shape {self.shape}: {result.shape}")
            result = shared(result)
            for name in (*FIELDS, "facts"):
                setattr(self, name, getattr(result, name))
            return
        self.make_writable()
        self.facts.step, self.facts.least = (
            min(getattr(each.facts, name) for each in (self, result)) for name in ("step", "least")
        )
        self.facts.closed = self.facts.closed and result.of_one_term()
        for name in FIELDS:
            getattr(self, name)[...] = getattr(result, name)

    def make_writable(self) -> None:
        if self.writable:
            return
        if self.has_views():
            raise TypeError("elements of an array that has views, or is one, are changed: change a np.copy() of it")
        self.facts = replace(self.facts, closed=self.of_one_term())
        for name in FIELDS:
            setattr(self, name, np.array(np.broadcast_to(getattr(self, name), self.shape)))
        self.writable = True

    def has_views(self) -> bool:
        self.views = [each for each in self.views if each() is not None]
        return self.is_view or bool(self.views)

    def of_one_term(self) -> bool:
        """Whether all of its elements are closed, which constant fields show."""
        if not self.terms.size == self.roundings.size == self.losses.size == 1:
            return False
        return bool((self.terms == 1).all() and not self.roundings.any() and not self.losses.any())

    def without_sums(self) -> Bounded:
        """The same elements of an array all of which are closed, with few fields: for rules, which change none."""
        return Bounded(
            self.precision, self.value, self.error, overflow=thin_mask(self.overflow), facts=replace(self.facts)
        )

    def closed(self) -> Bounded:
        """The same numbers, each as one term with its whole error."""
        if self.writable and self.facts.closed:
            return self.without_sums()
        if not self.writable and self.of_one_term():
            return self
        with np.errstate(all="ignore"):
            error, overflow = closing(self)
            return Bounded(self.precision, self.value, error, overflow=overflow, facts=replace(self.facts))


def closing(x: Bounded) -> tuple[Array, Array]:
    """The error of sums that are done in any order, and where one may overflow on its way.

    No partial sum rounds that is a multiple of the step, and small enough to be stored with all of its digits. All
    partial sums lie between the sum of the negative terms and that of the positive ones.
    """
    precision = x.precision
    additions = precision.additions(x.terms)
    roundings = x.roundings + additions
    reach = x.magnitude + x.error
    rounded = np.where(reach > 0, precision.gamma(roundings) * reach, 0.0)
    lost = (x.losses + (additions if precision.flushes else 0.0)) * precision.least
    # The terms in front were themselves rounded in float64: magnitude, by as many additions, and error.
    error = np.asarray((x.error + rounded + lost) * (1 + (roundings + 16) * 2.0**-52))
    error = np.where(np.isnan(error), np.inf, error)
    double = precision.dtype == np.float64  # whose magnitude is exact only where all of it has few digits
    most = x.magnitude if double else (x.magnitude + np.abs(x.value)) / 2
    step = x.facts.step
    if step >= precision.least:
        exact = (x.error == 0) & (most <= precision.whole * step) & np.isfinite(x.value)
        error = np.where(exact, 0.0, error)
    overflow = x.overflow | ~(reach + error <= precision.largest)
    return np.where(np.isfinite(x.value) | overflow, error, 0.0), thin_mask(overflow)


def thin_mask(mask: Any) -> Array:
    """A mask, or one element of it where it is nowhere true."""
    return np.asarray(mask if np.any(mask) else False)


def sizes_of(values: Array) -> Array:
    """Sizes of finite elements; 0 in place of the others, which are the same in any order."""
    sizes = np.abs(values)
    if not np.isfinite(sizes).all():
        sizes = np.where(np.isfinite(sizes), sizes, 0.0)
    return np.asarray(sizes)


def carried(values: Any, precision: Precision) -> Bounded:
    """An input of the kernel, which it has exactly, if its arithmetic has all digits of that."""
    found = np.asarray(values)
    values = found.astype(np.float64)
    error: Any = 0.0
    if found.dtype.itemsize > precision.dtype.itemsize:
        error = np.where(precision.rounded(values) == values, 0.0, precision.gamma(np.ones(())) * sizes_of(values))
    return Bounded(precision, values, error, facts=Facts(common_step(values), 0.99 * _least(values)))


def _least(values: Array) -> float:
    """The smallest of numbers none of which is negative; else none is known."""
    least = float(values.min(initial=np.inf))
    return least if 0 <= least < np.inf else -np.inf


def lifted(*operands: Any) -> list[Any]:
    """Operands of one function, all as `Bounded`. A constant may be rounded once, but for one of few digits."""
    precision = next(each.precision for each in operands if isinstance(each, Carrier))
    return [_lifted(each, precision) for each in operands]


def _lifted(operand: Any, precision: Precision) -> Bounded:
    if isinstance(operand, Bounded):
        return operand.without_sums() if operand.writable and operand.facts.closed else operand
    if isinstance(operand, Carrier):
        as_numbers: Bounded = operand.as_numbers()  # type: ignore[attr-defined]  # Undecided
        return as_numbers
    found = np.asarray(operand)
    if found.dtype.kind not in "biuf" and found.dtype.name not in ("bfloat16", "float16"):
        raise TypeError(f"a number is needed beside arrays with a bound, not {type(operand).__name__}")
    values = found.astype(np.float64)
    exact = written_exactly(values)
    facts = Facts(common_step(values), 0.99 * _least(values))
    error = 0.0 if exact.all() else np.where(exact, 0.0, precision.gamma(np.ones(())) * np.abs(values))
    return Bounded(precision, values, error, terms=1.0 if values.any() else 0.0, facts=facts)  # zeros add nothing


def _is_narrower(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether a format of real numbers has fewer digits than another one, or a smaller range."""
    first, second = (ml_dtypes.finfo(each) for each in (one, other))  # type: ignore[no-untyped-call]  # ml_dtypes
    return float(first.eps) > float(second.eps) or float(first.max) < float(second.max)


def _narrowed(x: Bounded, dtype: np.dtype[Any]) -> Bounded:
    """A kernel may store these numbers in a format: each is rounded once, unless it is one of that."""
    closed, limits = x.closed(), ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # ml_dtypes
    with np.errstate(all="ignore"):
        reach = sizes_of(closed.value) + closed.error
        rounded = float(limits.eps) / 2 * reach + float(limits.smallest_subnormal)
        same = (closed.value.astype(dtype).astype(np.float64) == closed.value) | np.isnan(closed.value)
        kept = (closed.error == 0) & same
        error = np.where(kept, 0.0, closed.error + rounded)
        overflow = closed.overflow | ~(kept | (reach + rounded <= float(limits.max)))
    least = 0.0 if closed.facts.least >= 0 else -np.inf
    return Bounded(
        x.precision, closed.value, error, overflow=thin_mask(overflow), facts=Facts(closed.facts.step, least)
    )


def whole(x: Bounded, name: str) -> Array:
    """A field in the shape of the array; often without memory of its own."""
    return np.broadcast_to(getattr(x, name), x.shape)


def moved(function: Callable[..., Any], *arrays: Bounded) -> Any:
    """Elements of arrays in other places: the function does so with each field. It may give a list of arrays."""
    first = arrays[0]
    if len(arrays) == 1 and first.fresh:
        first.make_writable()
    kept = len(arrays) == 1 and first.writable
    value = function(*(each.value for each in arrays))
    several = isinstance(value, (list, tuple))
    fields: list[Any] = [value]
    for name in FIELDS[1:]:
        parts = [getattr(each, name) for each in arrays]
        if kept:
            fields.append(function(parts[0]))
        elif all(part.size == 1 for part in parts) and len({part.item() for part in parts}) == 1:
            constant = parts[0].reshape(())
            fields.append([constant] * len(value) if several else constant)
        else:
            fields.append(function(*(whole(each, name) for each in arrays)))
    if several:
        return [_of_fields(arrays, each, kept) for each in zip(*fields, strict=True)]
    return _of_fields(arrays, fields, kept)


def _of_fields(arrays: tuple[Bounded, ...], fields: Iterable[Any], kept: bool) -> Bounded:
    first, (value, error, magnitude, *others) = arrays[0], fields
    facts = first.facts if kept else merged_facts(*arrays)
    if not kept and facts.least > 0:
        facts.least = 0.0  # zeros may stand beside
    named = dict(zip(FIELDS[3:], others, strict=True))
    result = Bounded(first.precision, value, error, magnitude, **named, facts=facts)
    result.writable = kept and all(getattr(result, name).flags.writeable for name in FIELDS)
    if len(arrays) == 1 and np.may_share_memory(result.value, first.value):
        result.is_view = True
        first.views.append(weakref.ref(result))
    elif result.writable:
        result.facts = replace(result.facts)
    return result


def shared(x: Bounded) -> Bounded:
    """Another array of the same sums, whose elements may be changed apart. Memory that nobody changes is shared."""
    fields = [np.array(getattr(x, name)) if x.writable else getattr(x, name) for name in FIELDS]
    named = dict(zip(FIELDS[3:], fields[3:], strict=True))
    return Bounded(x.precision, *fields[:3], **named, facts=replace(x.facts))


def fresh(x: Bounded) -> Bounded:
    """An array of its own, as np.copy() and np.zeros_like() make them to be filled."""
    made = shared(x)
    made.fresh = True
    return made


def merged_facts(*arrays: Bounded) -> Facts:
    """Those of all elements of some arrays."""
    return Facts(min(each.facts.step for each in arrays), min(each.facts.least for each in arrays))


def rule(*functions: Any, method: str = "__call__") -> Callable[[Rule], Rule]:
    """Make a function that of some functions of NumPy for arrays with bounds."""

    def remember(made: Rule) -> Rule:
        for each in functions:
            if isinstance(each, np.ufunc):
                UFUNCS[each, method] = made
            else:
                FUNCTIONS[each] = made
        return made

    return remember


def no_bound(name: str) -> str:
    """What to say of something that has none."""
    return f"{name} has no bound here: give the Problem a tolerance, relative to the norm of the output, in its place"


def _by_rule(found: Callable[..., Any] | None, name: str, inputs: Any, options: Any) -> Any:
    if found is None:
        raise TypeError(no_bound(name))
    try:
        inspect.signature(found).bind(*inputs, **options)
    except TypeError:
        given = ", ".join(options) or f"{len(inputs)} arguments"
        raise TypeError(no_bound(f"{name} with {given}")) from None
    with np.errstate(all="ignore"):
        return found(*inputs, **options)


def with_ellipsis(index: Any) -> tuple[Any, ...]:
    """An index of fields: with `...`, a single element too is an array, of which there may be a view."""
    parts = index if isinstance(index, tuple) else (index,)
    return parts if any(each is Ellipsis for each in parts) else (*parts, Ellipsis)


def _same_memory(one: Array, other: Array) -> bool:
    return one.__array_interface__["data"] == other.__array_interface__["data"] and (
        (one.shape, one.strides) == (other.shape, other.strides)
    )


def _without_extra(field: Array, ndim: int) -> Array:
    """A field without leading dimensions of length 1 that its target does not have."""
    extra = max(0, field.ndim - ndim)
    return field.reshape(field.shape[extra:])


MAKERS = (np.zeros, np.ones, np.empty, np.full, np.array, np.asarray, np.arange, np.eye, np.identity)
"""Functions of NumPy that come here for their argument `like`."""
_MADE_LIKE = "np.zeros_like(a) and np.zeros(shape, like=a) make arrays that carry it, and np.stack() gathers elements"
