"""Targets that take some kernels and number formats only: which calls go to them, and which rows they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import py_backends as pb
from py_backends import registry
from py_backends.backend import _amx, _cpu_kernels, _numba, avx, numba_cpu
from py_backends.contract import Array, Buffer, HostDevice, Launch, Shortcut, Target
from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.functions import call, dispatch, this_process
from py_backends.harness.request import Request
from py_backends.kernel_text import KernelText
from py_backends.workers.probe import BackendTarget

NARROW = "float16", "bfloat16", "int8"
DTYPES = ("float32", "float64", *NARROW)
TILES: Mapping[str, tuple[str, ...]] = {"matmul": NARROW}
Went = list[tuple[str, str, str]]
"""Target, dtype and way of each call."""


class Noting(HostDevice):
    """Computes as NumPy does, and notes where."""

    def __init__(self, target: str, went: Went) -> None:
        self._target, self._went = target, went

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            self._went.append((self._target, dtype.name, "launch"))
            *inputs, output = text.shaped(buffers, sizes)
            output[...] = self._compute(text.kernel, *inputs)

        return launch

    def shortcut(self, text: KernelText, dtypes: Sequence[str]) -> Shortcut | None:
        def run(a: Array, b: Array, out: Array | None) -> Array | None:
            if a.dtype.name not in dtypes or out is not None:
                return None
            self._went.append((self._target, a.dtype.name, "shortcut"))
            return self._compute(text.kernel, a, b)

        return run

    def _compute(self, kernel: str, a: Array, b: Array) -> Array:
        wide = a.astype(np.float64), b.astype(np.float64)
        result = registry.problem(kernel).result_dtype(a.dtype)
        return np.asarray(wide[0] @ wide[1] if kernel == "matmul" else wide[0] + wide[1]).astype(result)


Install = Callable[..., Went]


@pytest.fixture
def forgetting() -> Iterator[list[dict[Any, Any]]]:
    """Forgets all earlier calls meanwhile. The tables that remember them."""
    names = "_ready", "_places", "_devices", "_launches", "shortcuts"
    tables: list[dict[Any, Any]] = [dispatch._targets, dispatch._dtypes, *(getattr(call, name) for name in names)]
    kept = [dict(table) for table in tables]
    for table in tables:
        table.clear()
    yield tables
    for table, before in zip(tables, kept, strict=True):
        table.clear()
        table.update(before)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, forgetting: list[dict[Any, Any]]) -> Install:
    """Gives the backend numpy other targets, which note what goes to them."""

    def installed(*targets: Target) -> Went:
        went: Went = []
        kind = type(registry.backend("numpy"))
        monkeypatch.setattr(kind, "targets", lambda _: list(targets))
        monkeypatch.setattr(kind, "open", lambda _, target, __: Noting(target, went))
        for table in forgetting:
            table.clear()
        return went

    return installed


def ones(dtype: str) -> Array:
    return np.ones((2, 2), dtype)


def multiply(dtype: str, **asked: Any) -> Array:
    result: Array = pb.matmul(ones(dtype), ones(dtype), backend="numpy", **asked)
    assert result.tolist() == [[2, 2], [2, 2]]
    return result


def test_a_call_takes_the_first_target_that_has_its_kernel_and_dtype(install: Install) -> None:
    went = install(Target("tiles", dtypes=TILES), Target("wide"))
    for dtype in DTYPES:
        multiply(dtype)
    pb.vecadd(np.ones(3, np.float16), np.ones(3, np.float16), backend="numpy")
    assert [target for target, *_ in went] == ["wide", "wide", "tiles", "tiles", "tiles", "wide"]


@pytest.mark.parametrize("order", [DTYPES, DTYPES[::-1], ("bfloat16", "float64", "float32", "int8", "float16")])
def test_a_shortcut_takes_no_dtype_that_belongs_to_another_target(install: Install, order: Sequence[str]) -> None:
    went = install(Target("tiles", dtypes=TILES), Target("wide"))
    for dtype in (*order, *order, *order):
        multiply(dtype)
    assert all((target == "tiles") == (dtype in NARROW) for target, dtype, _ in went)
    assert {(dtype, way) for _, dtype, way in went[-len(order) :]} == {
        (dtype, "launch" if dtype in NARROW else "shortcut") for dtype in DTYPES
    }


@pytest.mark.parametrize(("target", "dtypes"), [("tiles", NARROW), ("wide", DTYPES)])
def test_a_named_target_has_a_shortcut_for_all_that_it_takes(
    install: Install, target: str, dtypes: Sequence[str]
) -> None:
    went = install(Target("tiles", dtypes=TILES), Target("wide"))
    multiply(dtypes[-1], target=target)
    went.clear()
    for dtype in dtypes:
        multiply(dtype, target=target)
    assert went == [(target, dtype, "shortcut") for dtype in dtypes]


def test_a_named_target_says_what_it_takes(install: Install) -> None:
    install(Target("tiles", dtypes=TILES), Target("wide"))
    words = "must be float16, bfloat16 or int8 in native byte order, not float32: matmul of numpy on tiles takes no"
    for _ in range(2):
        with pytest.raises(TypeError, match=words):
            multiply("float32", target="tiles")
    with pytest.raises(ValueError, match="numpy on tiles has no vecadd"):
        pb.vecadd(np.ones(3, np.float16), np.ones(3, np.float16), backend="numpy", target="tiles")


def test_a_target_that_needs_variables_is_for_processes_that_were_started_with_them(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = Target("needy", environment={"MADE_UP": "1"}), Target("wide")
    went = install(*targets)
    multiply("float32")
    what = "numpy needy is not available: it needs a process that was started with MADE_UP=1"
    with pytest.raises(BackendUnavailable, match=what) as caught:
        multiply("float32", target="needy")
    assert caught.value.fix == "set MADE_UP=1 and start Python"
    assert {target for target, *_ in went} == {"wide"}
    monkeypatch.setattr(this_process, "_AT_START", {"MADE_UP": "1"})
    went = install(*targets)
    multiply("float32")
    assert {target for target, *_ in went} == {"needy"}


def test_what_is_missing_leaves_its_dtypes_to_the_next(install: Install) -> None:
    went = install(Target.missing("tiles", "no tiles here", dtypes=TILES), Target("wide"))
    for dtype in (*DTYPES, *DTYPES):
        multiply(dtype)
    assert {target for target, *_ in went} == {"wide"}
    assert [way for *_, way in went[-len(DTYPES) :]] == ["shortcut"] * len(DTYPES)
    with pytest.raises(BackendUnavailable, match="numpy tiles is not available: no tiles here"):
        multiply("int8", target="tiles")


def test_a_dtype_whose_only_target_is_missing_has_its_reason(install: Install) -> None:
    install(Target("wide", dtypes={"matmul": ("float32",)}), Target.missing("tiles", "no tiles here", dtypes=TILES))
    multiply("float32")
    with pytest.raises(BackendUnavailable, match="numpy is not available: no tiles here"):
        multiply("int8")
    with pytest.raises(TypeError, match="a must be float32, float16, bfloat16 or int8 in native"):
        multiply("float64")


def test_arrays_of_others_go_where_their_dtype_does(install: Install) -> None:
    went = install(Target("tiles", dtypes=TILES), Target("wide"))
    for dtype in ("int8", "float32"):
        assert pb.matmul(memoryview(ones(dtype)), ones(dtype), backend="numpy").tolist() == [[2, 2], [2, 2]]
    assert went == [("tiles", "int8", "launch"), ("wide", "float32", "launch")]


def found(*targets: Target) -> list[BackendTarget]:
    return [BackendTarget("avx", target) for target in targets]


AMX: Mapping[str, tuple[str, ...]] = {"matmul/tuned": NARROW}
ROOM = {"vecadd": [(5,)], "matmul": [(5, 5, 5)]}


def rows(*targets: Target, every_target: bool = True, **asked: Any) -> set[tuple[str, ...]]:
    request = Request(**({"backends": ["avx"], "dtypes": DTYPES, "shapes": ROOM} | asked), every_target=every_target)
    specs = request.specs(found(*targets))
    return {(each.kernel, each.dtype, each.variant, each.target) for each in specs}


def test_a_missing_target_has_rows_in_its_own_dtypes_alone() -> None:
    made = rows(Target.missing("amx", "no tiles", dtypes=AMX), Target("avx512", device="CPU"))
    assert {row for row in made if row[-1] == "amx"} == {("matmul", dtype, "tuned", "amx") for dtype in NARROW}
    assert {dtype for kernel, dtype, _, target in made if (kernel, target) == ("matmul", "avx512")} >= {"float32"}


@pytest.mark.parametrize("every_target", [True, False])
def test_the_first_target_of_a_device_is_chosen_for_each_text_and_dtype(*, every_target: bool) -> None:
    targets = Target("amx", device="CPU", dtypes=AMX), Target("avx512", device="CPU"), Target("sse", device="CPU")
    made = rows(*targets, every_target=every_target, variants=["all"])
    every = rows(*targets, variants=["all"])
    of_text: dict[tuple[str, ...], list[str]] = {}
    for *text, target in every:
        of_text.setdefault(tuple(text), []).append(target)
    first = {(*text, min(there, key=["amx", "avx512", "sse"].index)) for text, there in of_text.items()}
    assert made == (every if every_target else first)
    assert ("matmul", "float32", "tuned", "avx512") in made
    assert ("matmul", "int8", "tuned", "amx") in made


def test_a_target_that_takes_nothing_of_what_is_asked_for_gives_no_row() -> None:
    targets = [Target("amx", dtypes=AMX)]
    with pytest.raises(WrongRequest, match="nothing runs in float32"):
        rows(*targets, dtypes=("float32",), kernels=["matmul"], shapes={})


class TestAvx:
    """What the backend makes of what its module says."""

    SETS = [("amx", "this CPU lacks AMX-TILE, AMX-BF16 and AMX-INT8", False), ("avx512", "", True), ("sse", "", True)]

    @pytest.fixture
    def targets(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Target]]:
        def made(sets: Sequence[tuple[str, str, bool]]) -> list[Target]:
            monkeypatch.setattr(_cpu_kernels, "instruction_sets", lambda _: sets)
            return avx.Backend().targets()

        return made

    def test_amx_is_first_and_has_the_narrow_formats_of_tiles(self, targets: Callable[..., list[Target]]) -> None:
        amx, *others = targets([("amx", "", True), *self.SETS[1:]])
        assert (amx.name, amx.available) == ("amx", True)
        tuned = registry.kernel_texts("matmul", "avx")["tuned"]
        taken = {
            ("matmul", "tuned"): tuple(name for name in tuned.dtypes if name in NARROW),
            ("attention", "tuned"): ("bfloat16",),
        }
        for text in (
            text for kernel in registry.kernel_names() for text in registry.kernel_texts(kernel, "avx").values()
        ):
            assert registry.dtypes(text, amx) == taken.get((text.kernel, text.variant), ())
        assert all(other.dtypes is None for other in others)

    def test_what_the_cpu_lacks_needs_another(self, targets: Callable[..., list[Target]]) -> None:
        amx = targets(self.SETS)[0]
        assert (amx.available, amx.reason, amx.fix) == (False, self.SETS[0][1], "needs a CPU that has it")
        assert amx.dtypes is not None

    def test_what_the_system_refuses_says_so(self, targets: Callable[..., list[Target]]) -> None:
        refused = "the system does not let this process use AMX tiles: Operation not permitted"
        amx = targets([("amx", refused, False), *self.SETS[1:]])[0]
        assert (amx.available, amx.reason, amx.fix) == (False, refused, None)

    def test_what_the_compiler_lacks_says_so(self, targets: Callable[..., list[Target]]) -> None:
        amx, avx512, *_ = targets(self.SETS[1:])
        assert not amx.available
        assert "which compiled the extension, has no such instructions" in (amx.reason or "")
        assert (avx512.name, avx512.available) == ("avx512", True)

    def test_what_is_missing_is_not_opened(self, targets: Callable[..., list[Target]]) -> None:
        targets(self.SETS)
        with pytest.raises(BackendUnavailable, match="lacks AMX-TILE"):
            avx.Backend().open("amx", 1)

    def test_without_the_module_all_are_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(_: str) -> None:
            raise BackendUnavailable("it was not built", "build it")

        monkeypatch.setattr(_cpu_kernels, "instruction_sets", missing)
        every = avx.Backend().targets()
        assert [each.name for each in every] == ["amx", "avx512", "avx2", "sse"]
        assert {each.reason for each in every} == {"it was not built"}


@pytest.mark.numba_cpu
class TestNumba:
    """What numba_cpu makes of the CPU that Numba compiles for."""

    AMX = "+amx-tile", "+amx-bf16", "+amx-int8"

    @pytest.fixture
    def cpu(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., numba_cpu.Backend]:
        """The backend on this CPU with some features of AMX alone."""
        triple, features = _numba.cpu()

        def made(amx: Iterable[str], *, listed: bool = True, refusal: str | None = None) -> numba_cpu.Backend:
            monkeypatch.setattr(_numba, "cpu", lambda: (triple, (features - set(self.AMX)) | set(amx)))
            monkeypatch.setattr(_amx, "listed", lambda: listed)
            monkeypatch.setattr(_amx, "refusal", lambda: refusal)
            return numba_cpu.Backend()

        return made

    def test_amx_is_first_and_has_three_formats_of_matmul(self, cpu: Callable[..., numba_cpu.Backend]) -> None:
        amx, other = cpu(self.AMX).targets()
        assert [(each.name, each.available, each.just_in_time) for each in (amx, other)] == [
            ("amx", True, True),
            ("cpu", True, True),
        ]
        texts = (registry.kernel_texts(kernel, "numba_cpu") for kernel in registry.kernel_names())
        for text in (text for of_kernel in texts for text in of_kernel.values()):
            narrow = tuple(name for name in text.dtypes if name in NARROW)
            on_tiles = (text.kernel, text.variant) == ("matmul", "tuned")
            assert registry.dtypes(text, amx) == (narrow if on_tiles else ())
            assert registry.dtypes(text, other) == registry.dtypes(text)

    @pytest.mark.parametrize("missing", AMX)
    def test_what_the_cpu_lacks_needs_another(self, cpu: Callable[..., numba_cpu.Backend], missing: str) -> None:
        backend = cpu(set(self.AMX) - {missing}, listed=False)
        amx, other = backend.targets()
        assert (amx.name, amx.available, amx.reason, amx.fix) == ("amx", False, _amx.LACKING, _amx.FIX)
        assert (amx.dtypes, other.name, other.available) == (_amx.taken("numba_cpu"), "cpu", True)
        with pytest.raises(BackendUnavailable, match="lacks AMX-TILE"):
            backend.open("amx", 1)

    def test_a_cpu_that_numba_was_told_of_says_so(self, cpu: Callable[..., numba_cpu.Backend]) -> None:
        amx, _ = cpu([]).targets()
        assert amx.reason == "Numba compiles for a CPU without AMX"
        assert amx.fix == "unset NUMBA_CPU_NAME and NUMBA_CPU_FEATURES"

    def test_what_the_system_refuses_says_so(self, cpu: Callable[..., numba_cpu.Backend]) -> None:
        backend = cpu(self.AMX, refusal="the system does not let this process use AMX tiles: why")
        amx, _ = backend.targets()
        assert (amx.available, amx.fix) == (False, None)
        with pytest.raises(BackendUnavailable, match="does not let this process use AMX tiles: why"):
            backend.open("amx", 1)

    def test_without_numba_both_are_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(_: str) -> None:
            raise BackendUnavailable("Numba is not installed", "install it")

        monkeypatch.setattr(_numba, "load", missing)
        every = numba_cpu.Backend().targets()
        assert [(each.name, each.available, each.reason) for each in every] == [
            ("amx", False, "Numba is not installed"),
            ("cpu", False, "Numba is not installed"),
        ]

    def test_without_amx_narrow_calls_are_computed_on_the_cpu(
        self, cpu: Callable[..., numba_cpu.Backend], forgetting: list[dict[Any, Any]]
    ) -> None:
        cpu([], listed=False)
        ones = np.ones((3, 5), "bfloat16"), np.ones((5, 2), "bfloat16")
        assert pb.matmul(*ones, backend="numba_cpu").tolist() == [[5, 5]] * 3
        assert [target for backend, target, _ in call._devices if backend == "numba_cpu"] == ["cpu"]
        with pytest.raises(BackendUnavailable, match="numba_cpu amx is not available: this CPU lacks"):
            pb.matmul(*ones, backend="numba_cpu", target="amx")


@pytest.mark.cpp
@pytest.mark.openmp
def test_only_avx_is_compiled_for_amx() -> None:
    for module in ("cpp", "openmp"):
        assert "amx" not in [name for name, *_ in _cpu_kernels.instruction_sets(module)]
        assert _cpu_kernels.best_instruction_set(module) != "amx"
