from py_backends._contract import Array
from py_backends._contract import BackendUnavailable as BackendUnavailable
from py_backends.harness.compare import compare as compare
from py_backends.harness.doctor import BackendTarget as BackendTarget
from py_backends.harness.doctor import backends as backends

__version__: str

def vecadd(
    a: Array,
    b: Array,
    *,
    backend: str,
    variant: str | None = None,
    target: str | None = None,
    threads: int | None = None,
    out: Array | None = None,
) -> Array: ...
def matmul(
    a: Array,
    b: Array,
    *,
    backend: str,
    variant: str | None = None,
    target: str | None = None,
    threads: int | None = None,
    out: Array | None = None,
) -> Array: ...
