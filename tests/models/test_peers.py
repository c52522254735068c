"""The reference libraries: what they are asked for in the narrow formats, and how it is told what they cannot do.

cuBLAS is a stand-in, since there may be no GPU at hand: it reads what it is given as the library's manual says.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from commands import run_python

import py_backends as pb
from py_backends import registry
from py_backends.backend import _mkl, _onednn, _tbb, _wheels, mkl, onednn
from py_backends.harness.case import Case
from py_backends.install import pip_install

NARROW = ("float16", "bfloat16", "int8")


class OnGpu(np.ndarray[Any, Any]):
    """As much of `cupy.ndarray` as is used. Its memory is the host's."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)


def on_gpu(shape: tuple[int, ...], dtype: Any, offset: int = 0) -> Any:
    """Zeros, at an address that is so many bytes behind one of a multiple of 16."""
    bytes_needed = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(bytes_needed + 32, np.uint8)
    begin = -memory.ctypes.data % 16 + offset
    return memory[begin : begin + bytes_needed].view(dtype).reshape(shape).view(OnGpu)


CODES = {2: np.float16, 14: ml_dtypes.bfloat16, 3: np.int8, 0: np.float32, 10: np.int32}
COMPUTE_32F, COMPUTE_32I = 68, 72


def read(address: int, code: int, rows: int, columns: int, distance: int) -> Any:
    """A matrix by columns, in host memory."""
    dtype = np.dtype(CODES[code])
    size = ((columns - 1) * distance + rows) * dtype.itemsize
    memory = np.frombuffer((ctypes.c_char * size).from_address(address), np.uint8).view(dtype)
    return np.lib.stride_tricks.as_strided(memory, (rows, columns), (dtype.itemsize, distance * dtype.itemsize))


class FakeCublas(ModuleType):
    """`cupy.cuda.cublas`: of `gemmEx` and `geam` what NVIDIA's manual says, in the host's memory."""

    CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_GEMM_DEFAULT = 0, 1, -1
    CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32I = COMPUTE_32F, COMPUTE_32I

    def gemmEx(  # noqa: N802  # CuPy's name
        self, handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, a: int, a_type: int, lda: int,
        b: int, b_type: int, ldb: int, beta: int, c: int, c_type: int, ldc: int, compute: int, algorithm: int,
    ) -> None:  # fmt: skip
        assert (handle, transa, transb, algorithm) == (7, 0, 0, -1)
        assert compute == {0: COMPUTE_32F, 10: COMPUTE_32I}[c_type]
        assert (lda >= max(1, m), ldb >= max(1, k), ldc >= max(1, m)) == (True,) * 3
        if compute == COMPUTE_32I:
            assert [each % 4 for each in (a, b, c, lda, ldb, ldc, m, k)] == [0] * 8, "what all GPUs take"
        scalar = ctypes.c_int32 if compute == COMPUTE_32I else ctypes.c_float
        assert (scalar.from_address(alpha).value, scalar.from_address(beta).value) == (1, 0)
        sums = CODES[c_type]
        left, right = read(a, a_type, m, k, lda).astype(sums), read(b, b_type, k, n, ldb).astype(sums)
        read(c, c_type, m, n, ldc)[:] = left @ right

    def sgeam(
        self, handle: int, transa: int, transb: int, m: int, n: int, alpha: int, a: int, lda: int, beta: int, b: int,
        ldb: int, c: int, ldc: int,
    ) -> None:  # fmt: skip
        """Adds op(A) and op(B), both m x n. B may be C itself if it is not transposed."""
        assert (handle, transa, transb) == (7, self.CUBLAS_OP_T, self.CUBLAS_OP_N)
        assert (lda >= max(1, n), ldb >= max(1, m), ldc >= max(1, m)) == (True,) * 3
        assert (b, ldb) == (c, ldc)
        assert (ctypes.c_float.from_address(alpha).value, ctypes.c_float.from_address(beta).value) == (1, 0)
        read(c, 0, m, n, ldc)[:] = read(a, 0, n, m, lda).T


def loaded_on_stand_in(monkeypatch: pytest.MonkeyPatch, kernel: str) -> Iterator[Any]:
    """The text of cublas for a kernel."""
    cupy, cuda, gemms = ModuleType("cupy"), ModuleType("cupy.cuda"), ModuleType("cupy.cublas")
    cuda.cublas, cuda.get_cublas_handle = FakeCublas("cupy.cuda.cublas"), lambda: 7  # type: ignore[attr-defined]
    cupy.cuda, cupy.cublas, cupy.zeros = cuda, gemms, on_gpu  # type: ignore[attr-defined]
    for module in (cupy, cuda, gemms):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    text = registry.kernel_texts(kernel, "cublas")["lecture"]
    loaded = text.load()
    yield getattr(loaded, kernel)
    del sys.modules[loaded.__name__]


@pytest.fixture
def matmul(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield from loaded_on_stand_in(monkeypatch, "matmul")


@pytest.fixture
def transpose(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield from loaded_on_stand_in(monkeypatch, "transpose")


@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 3), (3, 5), (64, 33), (0, 4), (4, 0)])
def test_cublas_is_asked_to_transpose_as_its_manual_says(transpose: Any, m: int, n: int) -> None:
    a, c = on_gpu((n, m), np.float32), on_gpu((m, n), np.float32)
    a[:] = np.arange(n * m).reshape(n, m)
    transpose(a, c, m, n)
    assert (c == a.T).all()


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    "sizes", [(8, 4, 12), (1, 1, 1), (5, 7, 3), (6, 8, 9), (4, 5, 8), (65, 63, 61), (3, 2, 0), (0, 4, 4), (4, 0, 5)]
)
def test_cublas_is_asked_for_what_its_manual_says(matmul: Any, dtype: str, sizes: tuple[int, int, int]) -> None:
    """Checked by the harness, as a row is. No GPU takes part: that the library does as its manual says is not shown."""
    case = Case(registry.problem("matmul"), sizes, np.dtype(dtype), seed=1)
    try:
        case.poison()
        m, n, k = sizes
        a, b, c = (on_gpu(shape, each) for shape, each in zip(case.shapes, dtypes(case), strict=True))
        a[:], b[:] = (array.reshape(shape) for array, shape in zip(case.inputs, case.shapes[:-1], strict=True))
        matmul(a, b, c, m, n, k)
        case.output[...] = c
        assert case.check_output().reason is None
    finally:
        case.close()


def dtypes(case: Case) -> tuple[Any, ...]:
    return case.dtype, case.dtype, case.problem.result_dtype(case.dtype)


def test_bytes_at_odd_addresses_are_copied_first(matmul: Any) -> None:
    a, b = on_gpu((8, 4), np.int8, offset=1), on_gpu((4, 8), np.int8, offset=3)
    c = on_gpu((8, 8), np.int32)
    a[:], b[:] = -128, 127
    matmul(a, b, c, 8, 8, 4)
    assert (c == -128 * 127 * 4).all()


class TestOfMkl:
    @pytest.mark.mkl
    def test_int8_is_taken_where_its_sums_are_exact(self, monkeypatch: pytest.MonkeyPatch) -> None:
        text = registry.kernel_texts("matmul", "mkl")["lecture"]
        for exact in (True, False):
            monkeypatch.setattr(_mkl, "integers_are_exact", lambda exact=exact: exact)
            (target,) = mkl.Backend().targets()
            assert ("int8" in registry.dtypes(text, target)) is exact
            assert {"float32", "float64", "float16", "bfloat16"} <= set(registry.dtypes(text, target))

    @pytest.mark.parametrize("limit", [2**15, None])
    def test_a_small_product_tells_whether_they_are(self, monkeypatch: pytest.MonkeyPatch, limit: int | None) -> None:
        """Without VNNI the sum of two products stays within 16 bits."""

        def gemm(*arguments: Any) -> None:
            a, c, pairs = arguments[8].astype(np.int32), arguments[15], arguments[6] // 2
            sum_of_two = 2 * a[0] * 127 if limit is None else min(2 * a[0] * 127, limit - 1)
            c[:] = pairs * sum_of_two - 128 * 127 * arguments[6]

        library = SimpleNamespace(cblas_gemm_s8u8s32_64=gemm, MKL_Set_Num_Threads_Local=lambda _: 0)
        monkeypatch.setattr(_mkl, "library", lambda: library)
        assert _mkl.integers_are_exact.__wrapped__() is (limit is None)

    def test_an_interruption_within_an_argument_is_one(self) -> None:
        """ctypes raised its own ArgumentError in its place."""
        script = """
import numpy as np
import py_backends as pb
from py_backends.backend import _mkl
convert, interrupting = _mkl._Elements.from_param, False
def converted(array):
    if interrupting:
        raise KeyboardInterrupt
    return convert(array)
_mkl._Elements.from_param = converted
a = np.ones((3, 3), np.float32)
for call, array in ((pb.matmul, a), (pb.vecadd, a[0])):
    interrupting = False
    call(array, array, backend="mkl")
    interrupting = True
    try:
        call(array, array, backend="mkl")
    except KeyboardInterrupt:
        print("interrupted")
"""
        run = run_python("-c", script)
        assert (run.stdout.split(), run.stderr) == (["interrupted"] * 2, "")


class TestOfOneDnn:
    def test_what_is_not_installed_says_what_installs_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none(name: str) -> Any:
            raise importlib.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(importlib.metadata, "files", none)
        monkeypatch.setattr(_onednn, "library", _onednn.library.__wrapped__)
        (target,) = onednn.Backend().targets()
        assert (target.available, target.reason, target.fix) == (False, "oneDNN is not installed", pip_install("peers"))

    def test_libraries_that_it_needs_are_loaded_from_beside_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        needs = {"libdnnl.so": ["libtbb.so", "libsycl.so"], "libsycl.so": ["libtbb.so"], "libtbb.so": []}
        loaded: list[str] = []

        def load(path: str) -> str:
            name = Path(path).name
            for missing in needs[name]:
                if missing not in loaded:
                    raise OSError(f"{missing}: cannot open shared object file: No such file or directory")
            loaded.append(name)
            return name

        monkeypatch.setattr(ctypes, "CDLL", load)
        for name in needs:
            (tmp_path / name).touch()
        assert str(_onednn._loaded(tmp_path / "libdnnl.so")) == "libdnnl.so"
        assert loaded == ["libtbb.so", "libsycl.so", "libdnnl.so"]
        loaded.clear()
        (tmp_path / "libtbb.so").unlink()
        with pytest.raises(OSError, match=r"^libtbb.so: cannot open"):
            _onednn._loaded(tmp_path / "libdnnl.so")

    def test_a_library_that_cannot_be_loaded_is_no_backend(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(path: Path) -> Any:
            raise OSError(f"{path.name}: invalid ELF header")

        monkeypatch.setattr(_onednn, "library", _onednn.library.__wrapped__)
        monkeypatch.setattr(_wheels, "library", lambda *_: Path("/nowhere/libdnnl.so.3"))
        monkeypatch.setattr(_onednn, "_loaded", broken)
        (target,) = onednn.Backend().targets()
        assert target.reason == "oneDNN cannot be loaded: libdnnl.so.3: invalid ELF header"

    @pytest.mark.onednn
    def test_a_variable_names_another_copy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        path = str(_wheels.library("onednn", "oneDNN", "libdnnl.so"))
        monkeypatch.setattr(_wheels, "library", None)
        monkeypatch.setattr(_onednn, "library", _onednn.library.__wrapped__)
        monkeypatch.setenv("PY_BACKENDS_ONEDNN", path)
        (target,) = onednn.Backend().targets()
        assert target.available
        assert target.version is not None
        assert target.version.endswith(f", {path}")
        monkeypatch.setenv("PY_BACKENDS_ONEDNN", "/nowhere/libdnnl.so")
        (target,) = onednn.Backend().targets()
        assert target.reason is not None
        assert target.reason.startswith("oneDNN cannot be loaded: /nowhere/libdnnl.so: ")
        assert target.fix == "set PY_BACKENDS_ONEDNN to a libdnnl.so, or unset it"

    @pytest.mark.onednn
    def test_a_copy_is_named_relative_to_the_folder(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is loaded by its whole path: the loader looks for a bare name elsewhere, and so did we, without an end."""
        path = _wheels.library("onednn", "oneDNN", "libdnnl.so")
        monkeypatch.chdir(path.parent)
        monkeypatch.setattr(_onednn, "library", _onednn.library.__wrapped__)
        monkeypatch.setenv("PY_BACKENDS_ONEDNN", f"./{path.name}")
        (target,) = onednn.Backend().targets()
        assert target.available, target.reason

    def test_a_copy_that_runs_by_openmp_is_limited_by_that(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its threads are not those of TBB. A limit is one of the call, also where that fails."""
        threads = [4]
        copy = SimpleNamespace(omp_get_max_threads=lambda: threads[-1], omp_set_num_threads=threads.append)
        monkeypatch.setattr(_onednn, "library", lambda: copy)
        monkeypatch.setattr(_onednn, "_version", lambda: _onednn._Version(runtime=2))

        def fail() -> None:
            raise ValueError(f"{_onednn.most_threads()} threads")

        with pytest.raises(ValueError, match=r"^3 threads$"):
            _onednn.limited_to(3, fail)
        assert threads == [4, 3, 4]
        monkeypatch.setattr(_onednn, "library", SimpleNamespace)
        assert _onednn.most_threads() == 0
        monkeypatch.setattr(_onednn, "_version", lambda: _onednn._Version(runtime=1))
        assert _onednn.most_threads() == 1

    @pytest.mark.parametrize("wrong", [_onednn.Failed("oneDNN: unimplemented"), "saturated"])
    def test_formats_that_it_has_not_are_left_out(self, monkeypatch: pytest.MonkeyPatch, wrong: Any) -> None:
        def multiply(a: Any, _b: Any, c: Any, *_: Any) -> None:
            if isinstance(wrong, Exception) and a.dtype == np.float16:
                raise wrong
            c[:] = 64 if a.dtype != np.int8 else 64 * 2**14 if wrong == "saturated" else 64 * 127 * 127

        monkeypatch.setattr(_onednn, "multiply", multiply)
        monkeypatch.setattr(_onednn, "multiply_integers", multiply)
        monkeypatch.setattr(_onednn, "version", lambda: "3")
        (target,) = onednn.Backend().targets()
        missing = "int8" if wrong == "saturated" else "float16"
        assert target.dtypes is not None
        assert {*onednn.Backend.dtypes} - {*target.dtypes["matmul"]} == {missing}

    @pytest.mark.onednn
    def test_int8_has_no_sum_that_float32_rounded(self) -> None:
        """As those of its primitive are, above 2^24."""
        if not any("int8" in (each.dtypes or {}).get("matmul", ()) for each in registry.backend("onednn").targets()):
            pytest.skip("oneDNN takes no int8 on this CPU, which has no VNNI")
        a, b = np.full((5, 4099), 127, np.int8), np.full((4099, 3), 127, np.int8)
        a[:, 0] = 1
        assert (pb.matmul(a, b, backend="onednn") == 127 + 4098 * 127 * 127).all()

    @pytest.mark.onednn
    def test_an_interrupted_call_writes_nothing_later(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The library computes after its function has returned. The arrays of an interrupted call may be freed."""
        real, waited = _onednn.library(), []

        class Interrupting:
            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

            def dnnl_primitive_execute(self, *given: Any) -> int:
                real.dnnl_primitive_execute(*given)
                raise KeyboardInterrupt

            def dnnl_stream_wait(self, stream: Any) -> int:
                waited.append(stream)
                return int(real.dnnl_stream_wait(stream))

        a = np.ones((64, 64), np.float32)
        pb.matmul(a, a, backend="onednn")
        monkeypatch.setattr(_onednn, "library", Interrupting)
        with pytest.raises(KeyboardInterrupt):
            pb.matmul(a, a, backend="onednn")
        assert len(waited) == 1

    @pytest.mark.onednn
    def test_threads_have_primitives_of_their_own(self) -> None:
        """More shapes than a thread keeps, by several threads at once."""
        wrong: list[int] = []

        def calls() -> None:
            for n in (*range(1, _onednn._PRIMITIVES + 8), 1, 2):
                a = np.ones((n, n), np.float32)
                if not (pb.matmul(a, a, backend="onednn") == n).all():
                    wrong.append(n)

        threads = [threading.Thread(target=calls) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []

    @pytest.mark.onednn
    def test_first_calls_at_the_same_time_share_one_engine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A stream of one engine refuses primitives of another."""
        monkeypatch.setattr(_onednn, "_engines", [])
        monkeypatch.setattr(_onednn, "_of_thread", threading.local())
        together = threading.Barrier(8)
        eye = np.eye(4, dtype=np.float32)

        def work(_: int) -> bool:
            together.wait()
            return bool((pb.matmul(eye, eye, backend="onednn") == eye).all())

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(8)))

    @pytest.mark.onednn
    @pytest.mark.parametrize("threads", [None, 1])
    def test_what_it_refuses_is_an_error(self, threads: int | None) -> None:
        """On fewer threads too, where C++ lies between the call and who made it."""
        eights = np.ones(64)
        matrix = _onednn.Matrix(8, 8, eights.dtype)

        def multiply() -> None:
            _onednn.multiply(eights, eights, eights, (matrix, matrix, matrix))

        with pytest.raises(_onednn.Failed, match="oneDNN: unimplemented"):
            multiply() if threads is None else _tbb.limited_to(threads, multiply)
