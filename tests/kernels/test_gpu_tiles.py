"""The tuned texts for NVIDIA's GPUs at the edges of their tiles, and where rows or arrays are not aligned.

On the CPU in place of the GPU, where there is none: in small shapes, since Numba's simulator takes its time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from commands import run_python
from conftest import at_hand, nightly, targets_of

from py_backends import registry
from py_backends.conformance.running import Runners
from py_backends.conformance.selection import Subject
from py_backends.contract import Array, Target
from py_backends.harness.case import Case
from py_backends.kernel_text import KernelText
from py_backends.workers.runner import Runner

pytestmark = pytest.mark.slow

TILES = {
    # one below, at and above: its 64 rows and columns, 8 products between two barriers, and as many before the first
    "numba_cuda": [(64, 64, 8), (65, 63, 9), (1, 66, 17), (129, 65, 2)],
    "cuda": [
        *[(64, 64, 64), (63, 65, 7), (65, 64, 8), (64, 63, 9), (66, 66, 16), (40, 68, 23), (128, 128, 24)],
        # from here on its large tiles of 128 rows, and 128 columns in float32 or 64 in float64; rows of a multiple of
        # 4, of 2 and of 1 elements; tiles in bands of 16
        *[(129, 128, 1), (127, 132, 8), (128, 129, 15), (255, 130, 16), (256, 256, 17), (257, 260, 33), (300, 131, 25)],
        *[(1, 400, 40), (400, 1, 40), (130, 256, 0), (2200, 140, 9), (4300, 70, 10)],
    ],
}
DTYPES = ["float32", "float64", nightly("float16")]
STRETCHES = {"numba_cuda": [2047, 2049, 4097], "cuda": [2047, 2048, 2049, 4095, 4096, 6145, 100_003]}
"""Elements of vecadd: a block adds 2048 at once."""


def cases(kernel: str, shapes: dict[str, list[Any]]) -> Iterator[Any]:
    for backend, target in at_hand():
        text = registry.kernel_texts(kernel, backend).get("tuned")
        for sizes in shapes.get(backend, []) if text else []:
            name = f"{backend}-{'x'.join(map(str, np.atleast_1d(sizes)))}"
            yield pytest.param(text, target, sizes, marks=getattr(pytest.mark, backend), id=name)


def run(runner: Runner, text: KernelText, case: Case) -> str | None:
    """Run a case through the backend's worker; what is wrong with its result, or None."""
    if case.dtype.name not in registry.dtypes(text):
        pytest.skip(f"{text.place} takes no {case.dtype.name}")
    case.poison()
    runner.run(text, case)
    verdict = case.check_output()
    runner.unload(case)
    case.close()
    return verdict.reason


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("text", "target", "sizes"), list(cases("matmul", TILES)))
def test_matmul_at_the_edges_of_tiles(
    runners: Runners, text: KernelText, target: Target, sizes: tuple[int, ...], dtype: str
) -> None:
    case = Case(text.problem, sizes, np.dtype(dtype), seed=5)
    assert run(runners.get(Subject(text, target)), text, case) is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("text", "target", "size"), list(cases("vecadd", STRETCHES)))
def test_vecadd_at_the_ends_of_stretches(
    runners: Runners, text: KernelText, target: Target, size: int, dtype: str
) -> None:
    case = Case(text.problem, (size,), np.dtype(dtype), seed=5)
    assert run(runners.get(Subject(text, target)), text, case) is None


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ["float32", nightly("float64"), nightly("float16")])
@pytest.mark.parametrize(("kernel", "sizes"), [("vecadd", (5000,)), ("matmul", (70, 132, 20))])
def test_any_array_may_be_unaligned(kernel: str, sizes: tuple[int, ...], dtype: str) -> None:
    """CuPy hands out no pointer that is aligned to its elements only, but CUDA allows it."""
    target = targets_of("cuda")[0]
    if not target.emulated:
        pytest.skip("where arrays lie on a GPU is CuPy's choice")
    device = registry.backend("cuda").open(target.name, 1)  # computes in the caller's arrays, wherever they lie
    text = registry.kernel_texts(kernel, "cuda")["tuned"]
    launch = device.prepare(text, np.dtype(dtype))
    for unaligned in range(3):
        case = Case(text.problem, sizes, np.dtype(dtype), seed=3)
        case.poison()
        shared = [case._part(at, span.first, span.size + span.zone) for at, span in enumerate(case.spans)]
        arrays = [moved(one, at == unaligned) for at, one in enumerate(shared)]
        buffers = [device.upload(array) for array in arrays]
        assert [buffer.address % 16 != 0 for buffer in buffers] == [at == unaligned for at in range(3)]
        launch(buffers, sizes)
        device.wait()
        device.download(buffers[-1], arrays[-1])
        shared[-1][...] = arrays[-1]
        assert case.check_output().reason is None
        case.close()


def moved(array: Array, unaligned: bool) -> Array:
    """A copy that is aligned to 16 bytes, or just not."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 16 + (array.itemsize if unaligned else 0)
    copy = room[start : start + array.nbytes].view(array.dtype)
    copy[...] = array
    return copy


BEFORE_A_WALL = """import ctypes, mmap, sys
import numpy as np
from py_backends import registry

libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
walls = []

def before_a_wall(elements, dtype):
    '''An array whose last element is the last of a page, before one that nobody may read.'''
    size = -(-elements * dtype.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, size + mmap.PAGESIZE), np.uint8)
    assert libc.mprotect(memory.ctypes.data + size, mmap.PAGESIZE, 0) == 0
    walls.append(memory)
    return memory[size - elements * dtype.itemsize : size].view(dtype)

device = registry.backend("cuda").open("emulated", 1)
for kernel, shapes in {"vecadd": [(5000,), (4097,)], "matmul": [(65, 66, 9), (70, 132, 20), (190, 260, 7)]}.items():
    text = registry.kernel_texts(kernel, "cuda")["tuned"]
    for dtype in [np.dtype("float32")]:
        launch = device.prepare(text, dtype)
        for sizes in shapes:
            arrays = [before_a_wall(int(np.prod(shape)), dtype) for shape in text.problem.shapes(sizes)]
            buffers = [device.upload(array) for array in arrays]
            assert [buffer.address for buffer in buffers] == [array.ctypes.data for array in arrays]
            launch(buffers, sizes)
            device.wait()
            print(kernel, dtype, sizes, "ended")
"""


@pytest.mark.cuda
def test_nothing_is_read_behind_an_array() -> None:
    """What lies behind an array cannot be read here; a result that is not written would not show that it was."""
    if not targets_of("cuda")[0].emulated:
        pytest.skip("compute-sanitizer sees this on a GPU")
    script = run_python("-c", BEFORE_A_WALL)
    assert script.returncode == 0, script.stdout + script.stderr
    assert script.stdout.count("ended") == 5
