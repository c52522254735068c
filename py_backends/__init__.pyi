from typing import Any, Literal, Protocol, TypeVar, overload

from py_backends.commands._notebook import compare as compare
from py_backends.commands._notebook import race as race
from py_backends.commands._notebook import read as read
from py_backends.contract import Array
from py_backends.errors import BackendUnavailable as BackendUnavailable
from py_backends.workers.probe import BackendTarget as BackendTarget
from py_backends.workers.probe import backends as backends

__version__: str

_Output = TypeVar("_Output")

class _Kernel(Protocol):
    """The function of a kernel. Its inputs are arrays of NumPy, and of any library that hands their memory out.

    Inputs by their names, and numbers of the kernel, are keyword arguments, too.
    """

    @overload
    def __call__(
        self,
        *inputs: Any,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: None = None,
        to: Literal["host"] | None = None,
        **named: Any,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        *inputs: Any,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: None = None,
        to: Literal["device"],
        **named: Any,
    ) -> Any: ...
    @overload
    def __call__(
        self,
        *inputs: Any,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: _Output,
        to: None = None,
        **named: Any,
    ) -> _Output: ...

def __getattr__(name: str) -> _Kernel: ...  # every other name is a kernel's, and plug-ins bring more
