from typing import Any, Literal, Protocol, TypeVar, overload

from py_backends.commands._notebook import compare as compare
from py_backends.commands._notebook import read as read
from py_backends.contract import Array
from py_backends.errors import BackendUnavailable as BackendUnavailable
from py_backends.workers.probe import BackendTarget as BackendTarget
from py_backends.workers.probe import backends as backends

__version__: str

_Output = TypeVar("_Output")

# The inputs are `Any`: arrays of NumPy, and of any library that hands their memory out.

class _OfAB(Protocol):
    """A kernel of two inputs."""

    @overload
    def __call__(
        self,
        a: Any,
        b: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: None = None,
        to: Literal["host"] | None = None,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        a: Any,
        b: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: None = None,
        to: Literal["device"],
    ) -> Any: ...
    @overload
    def __call__(
        self,
        a: Any,
        b: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: _Output,
        to: None = None,
    ) -> _Output: ...

class _OfA(Protocol):
    """A kernel of one input."""

    @overload
    def __call__(
        self,
        a: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: None = None,
        to: Literal["host"] | None = None,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        a: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: None = None,
        to: Literal["device"],
    ) -> Any: ...
    @overload
    def __call__(
        self,
        a: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: _Output,
        to: None = None,
    ) -> _Output: ...

class _OfUSteps(Protocol):
    """A kernel of one input, and a number of steps."""

    @overload
    def __call__(
        self,
        u: Any,
        *,
        steps: int = 1,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: None = None,
        to: Literal["host"] | None = None,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        u: Any,
        *,
        steps: int = 1,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: None = None,
        to: Literal["device"],
    ) -> Any: ...
    @overload
    def __call__(
        self,
        u: Any,
        *,
        steps: int = 1,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: _Output,
        to: None = None,
    ) -> _Output: ...

class _OfAtPositionMass(Protocol):
    """A kernel of three inputs."""

    @overload
    def __call__(
        self,
        at: Any,
        position: Any,
        mass: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: None = None,
        to: Literal["host"] | None = None,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        at: Any,
        position: Any,
        mass: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: None = None,
        to: Literal["device"],
    ) -> Any: ...
    @overload
    def __call__(
        self,
        at: Any,
        position: Any,
        mass: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: _Output,
        to: None = None,
    ) -> _Output: ...

class _OfQKV(Protocol):
    """A kernel of three inputs."""

    @overload
    def __call__(
        self,
        q: Any,
        k: Any,
        v: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: None = None,
        to: Literal["host"] | None = None,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        q: Any,
        k: Any,
        v: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: None = None,
        to: Literal["device"],
    ) -> Any: ...
    @overload
    def __call__(
        self,
        q: Any,
        k: Any,
        v: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: _Output,
        to: None = None,
    ) -> _Output: ...

attention: _OfQKV
dot: _OfAB
heat: _OfUSteps
matmul: _OfAB
nbody: _OfAtPositionMass
transpose: _OfA
vecadd: _OfAB
