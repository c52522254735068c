"""Parts of the conformance suite by themselves: what is said of calls, which cases are run, named and left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings

from py_backends import registry
from py_backends.backend import numpy as numpy_backend
from py_backends.conformance import any_kernel, caller, calls, selection, sizes, test_drawn, trials
from py_backends.conformance.calls import Call
from py_backends.conformance.plugin import just_in_time_last
from py_backends.conformance.running import Arenas, _without_flushes, run_call, run_cases, verdict
from py_backends.conformance.selection import kind_names
from py_backends.conformance.tally import DEPENDING, PREPARE, REFERENCE, Tally, summary
from py_backends.conformance.trials import (
    Trial,
    answer,
    chosen,
    named_as,
    of_few_sizes,
    of_kernel,
    of_sizes,
    without_subnormals,
)
from py_backends.contract import Array, HostDevice, Launch, Problem, Reference, Target
from py_backends.kernel_text import KernelText
from py_backends.number_formats import DTYPES
from py_backends.workers.process import WorkerFailed

VECADD = registry.problem("vecadd")
VECADD_TEXT = registry.kernel_texts("vecadd", "numpy")["lecture"]
MATMUL_TEXT = registry.kernel_texts("matmul", "numpy")["lecture"]
DTYPE = np.dtype(np.float32)
AT_ONCE = next(kind for kind in calls.KINDS if kind.together)


@pytest.mark.parametrize("at", [0, 3, 8, 20, 55])
def test_the_call_that_went_wrong_among_threads_is_named(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list(AT_ONCE.cases(VECADD))
    wrong = {made[at].name, made[55].name}
    monkeypatch.setattr(caller, "perform", lambda *what: what[-1].name if what[-1].name in wrong else None)
    session = caller.Caller()
    session.open([], "numpy", "cpu", 1)
    told = session.call([], "vecadd", "lecture", "float32", [asdict(call) for call in made], calls.THREADS)
    assert told == {"at": at, "wrong": made[at].name}


def test_calls_use_what_their_worker_has_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, prepare_text = [], numpy_backend.Device.prepare

    def counted(device: numpy_backend.Device, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        compiled.append(dtype.name)
        return prepare_text(device, text, dtype)

    monkeypatch.setattr(numpy_backend.Device, "prepare", counted)
    session = caller.Caller()
    session.open([], "numpy", "cpu", 5)
    session.prepare([], "vecadd", "lecture", "float32")
    call = asdict(Call("with so many threads", (9,), threads=5))
    assert session.call([], "vecadd", "lecture", "float32", [call], 1)["wrong"] is None
    assert compiled == ["float32"]


def test_targets_that_compile_just_in_time_come_last() -> None:
    """And tests of others than texts stay where they are."""

    def item(name: str, target: Target | None) -> Any:
        params = {} if target is None else {"subject": selection.Subject(VECADD_TEXT, target)}
        return SimpleNamespace(name=name, callspec=SimpleNamespace(params=params))

    late, early = Target("gpu", just_in_time=True), Target("cpu")
    items = [item("a", late), item("b", None), item("c", early), item("d", late), item("e", early), item("f", None)]
    just_in_time_last(items)
    assert "".join(each.name for each in items) == "cbeadf"


@pytest.mark.parametrize(
    ("kind", "taken", "first"),
    [
        ("shapes", ("float64",), "float64"),
        ("shapes", ("float64", "float32"), "float32"),
        ("shapes", ("int8", "float16"), "float16"),
        ("indices", ("float16",), None),
        ("depths", ("float32", "bfloat16"), "bfloat16"),
        ("saturation", DTYPES, "int8"),
    ],
)
def test_what_is_tried_in_one_dtype_is_tried_in_the_first_that_it_has_cases_in(
    kind: str, taken: tuple[str, ...], first: str | None
) -> None:
    subject = selection.Subject(MATMUL_TEXT, Target("cpu", dtypes={"matmul": taken}))
    (of_name,) = (each for each in selection.all_kinds_of("matmul") if each.name == kind)
    assert selection.first_dtype(of_name, subject) == first


def test_a_text_is_tried_in_what_it_and_its_target_take() -> None:
    taken = selection.Subject(
        MATMUL_TEXT, Target("cpu", dtypes={"matmul": ("int8", "float32"), "vecadd": ("float64",)})
    )
    assert taken.dtypes == ("float32", "int8")
    shapes = next(kind for kind in any_kernel.ALWAYS if kind.name == "shapes")
    quick = selection.Selection(extent=selection.Extent.QUICK)
    tried = {dtype for dtype in DTYPES if quick.cases(shapes, dtype, taken)}
    assert tried == {"float32", "int8"}


def test_a_quick_run_tries_of_steps_what_goes_wrong_at_ragged_ends() -> None:
    """And all of those that are named, of the default, of the lecture's and of any that is no step."""
    own = registry.kernel_texts("matmul", "openmp")
    sources = {**own, "of_its_own": replace(own["packing"], variant="of_its_own")}
    kinds = [kind for kind in selection.all_kinds_of("matmul") if not kind.costly]

    def tried(variant: str, *named: str) -> set[str]:
        subject = selection.Subject(sources[variant], Target("cpu"))
        of_run = selection.Selection(variants=named, extent=selection.Extent.QUICK)
        return {kind.name for kind in kinds if of_run.cases(kind, "float32", subject)}

    assert tried("packing") == {"shapes"}
    assert tried("packing", "packing") == tried("tuned") == tried("of_its_own")
    assert tried("lecture") > {"shapes", "alignment"}


class Alive(Problem):
    """Cells that are 0 or 1. Of random numbers nearly all would be alive."""

    name, signature, dtypes = "alive", "(n)->(n)", ("int8",)

    def draw(self, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Iterator[Array]:
        yield generator.integers(0, 2, sizes[0])

    def reference(self, inputs: Sequence[Array]) -> Reference:
        return Reference(inputs[0])


def test_a_problem_that_draws_its_inputs_is_tried_with_these() -> None:
    """Wrong sources of a cellular automaton passed, since no board of other inputs lives for two steps."""
    (own,) = (kind for kind in any_kernel.WITHOUT_OWN if kind.name == "own-inputs")
    problem = Alive()
    drawn = np.concatenate([trial.inputs(problem, np.dtype("i1"))[0] for trial in own.cases(problem)])
    assert drawn.dtype == np.int8
    assert 0.4 < drawn.mean() < 0.6
    assert set(drawn) == {0, 1}
    assert list(own.cases(VECADD)) == []


class Valid(Problem):
    """A mean of a window, without the ends: the length of the result depends on a number."""

    name, signature, nonzero_sizes = "valid", "(n)->(n)", ("n", "window")
    numbers: ClassVar[Mapping[str, int | float]] = {"window": 5}

    def shapes(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        n, window = sizes
        if window > n:
            raise ValueError("window is at most n")
        return (n,), (n - window + 1,)

    def draw(self, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Iterator[Array]:
        yield generator.integers(0, sizes[1], sizes[0])

    @staticmethod
    def function(x: Array, window: int) -> Array:
        return np.convolve(x, np.ones(window) / window, mode="valid")


def test_shapes_gets_the_numbers_and_refuses_those_that_do_not_fit() -> None:
    """The suite chose sizes without numbers, and then tried a window of 0 that no source allowed: 80 failures."""
    problem = Valid()
    for kind in (*any_kernel.ALWAYS, *any_kernel.WITHOUT_OWN, *calls.KINDS):
        made = trials.with_numbers(problem, kind.cases(problem))
        assert made or kind.name in {"nothing", "nothing-called", "one-array-twice"}, kind.name
        assert all(1 <= window <= n for n, window in (case.sizes for case in made)), kind.name
        assert len({window for _, window in (case.sizes for case in made)}) > 1 or len(made) < 8, kind.name
    assert sizes.whole(problem, (3,), 2) == (3, 3), "the one after 0"
    assert sizes.whole(problem, (0,)) is None
    (own,) = (kind for kind in any_kernel.WITHOUT_OWN if kind.name == "own-inputs")
    for trial in list(own.cases(problem))[:20]:
        (drawn,) = trial.inputs(problem, DTYPE)
        assert drawn.max() < trial.sizes[1], "drawn for the trial's number, and not for its default"


def test_drawn_sizes_fit_with_their_numbers() -> None:
    problem = Valid()

    @settings(max_examples=50, deadline=None, database=None)
    @given(test_drawn._sizes(problem))
    def holds(drawn: tuple[int, ...]) -> None:
        n, window = drawn
        assert 1 <= window <= n

    holds()


def test_a_call_has_the_shape_of_out_from_its_own_numbers() -> None:
    """It came from their defaults."""
    problem, call = Valid(), Call("of another window", (19, 2), out=calls.IN_ORDER)

    def run(x: Array, *, out: Array, window: int, **_: Any) -> Array:
        return np.copyto(out, Valid.function(x, window)) or out

    assert caller.perform(run, problem, DTYPE, call) is None


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [(kernel, dtype) for kernel in ("vecadd", "matmul") for dtype in registry.problem(kernel).dtypes],
)
def test_where_work_items_are_interpreted_every_dtype_has_shapes(kernel: str, dtype: str) -> None:
    shapes = next(kind for kind in any_kernel.ALWAYS if kind.name == "shapes")
    assert len(chosen(shapes, kernel, dtype, quick=True, interpreted=True)) >= 8


class TestNamedAs:
    CASES = (Call("1", (1,)), Call("11", (11,)), Call("21", (21,)))

    @pytest.mark.parametrize(
        ("text", "names"), [("1", ["1"]), ("11", ["11"]), ("2", ["21"]), ("x", []), (None, ["1", "11", "21"])]
    )
    def test_a_name_comes_before_a_part_of_one(self, text: str | None, names: list[str]) -> None:
        assert [case.name for case in named_as(text, self.CASES)] == names


class TestCommand:
    def command(self, kind: str, case: str) -> str:
        return Tally("avx", "sse", "vecadd", "tuned", "float32", kind, 3, [(case, "it is wrong")]).command

    def test_runs_a_case_alone_where_that_shows_it(self) -> None:
        assert self.command("indices", "numbered, 19").endswith("--kind=indices -k float32 --case='numbered, 19'")

    @pytest.mark.parametrize("kind", ["repeats", "calls-repeated", "threads-at-once"])
    def test_runs_a_kind_whose_cases_depend_on_each_other(self, kind: str) -> None:
        assert self.command(kind, "call 100, 9").endswith(f"--kind={kind} -k float32")
        assert set(kind_names()) >= DEPENDING

    @pytest.mark.parametrize("instead", [PREPARE, REFERENCE])
    def test_runs_a_kind_of_which_no_case_ran(self, instead: str) -> None:
        assert self.command("shapes", instead).endswith("--kind=shapes -k float32")


def wrong_of(name: str, kernel: str, run: Callable[..., Any], dtype: np.dtype[Any] = DTYPE) -> set[str | None]:
    """What is said of the calls of a kind, made by a function in place of a kernel's."""
    problem, device = registry.problem(kernel), HostDevice
    (kind,) = (kind for kind in calls.KINDS if kind.name == name)
    return {
        caller.perform_at(device, run, problem, dtype, call)  # type: ignore[arg-type]  # stands in for a device
        if call.to_device
        else caller.perform(run, problem, dtype, call)
        for call in chosen(kind, kernel, dtype.name)
    }


class TestCallsOfAWrongFunction:
    @pytest.mark.parametrize("kernel", ["vecadd", "matmul"])
    def test_which_takes_all_inputs(self, kernel: str) -> None:
        wrong = wrong_of("unfit-inputs", kernel, lambda *_, out, **__: out)
        assert wrong == {f"it accepted the call, which must end as {error}" for error in ("TypeError", "ValueError")}

    @pytest.mark.parametrize("kernel", ["vecadd", "matmul"])
    def test_which_refuses_all_inputs_alike(self, kernel: str) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise ValueError("it does\n  not fit")

        assert wrong_of("unfit-inputs", kernel, refuse) == {None, "it raised ValueError: it does / not fit"}

    def test_which_writes_before_it_refuses(self) -> None:
        def write(*_: Any, out: Any, **__: Any) -> None:
            if out is not None:
                out[...] = 0
            raise ValueError("it does not fit")

        assert "it refused the call, but wrote to the output" in wrong_of("unfit-inputs", "vecadd", write)

    @pytest.mark.parametrize("dtype", registry.problem("matmul").dtypes)
    def test_which_takes_another_format_of_an_input_for_its_own(self, dtype: str) -> None:
        def take(a: Any, b: Any, out: Any, **_: Any) -> Any:
            if a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]:
                return out
            raise ValueError("it does not fit")

        assert wrong_of("unfit-inputs", "matmul", take, np.dtype(dtype)) == {
            None,
            "it accepted the call, which must end as TypeError",
        }

    @pytest.mark.parametrize("dtype", registry.problem("matmul").dtypes)
    def test_which_writes_over_its_input(self, dtype: str) -> None:
        """Of which an element has as many bytes as one of the result, or fewer."""

        def multiply(a: Any, b: Any, out: Any, **_: Any) -> Any:
            out[...] = a.astype(out.dtype) @ b.astype(out.dtype)
            return out

        for kind in ("in-place", "overlapping"):
            wrong = wrong_of(kind, "matmul", multiply, np.dtype(dtype))
            assert "it accepted the call, which must end as ValueError" in wrong
        assert None in wrong, "beside the input it is right"

    def test_which_confuses_an_array_that_is_passed_twice(self) -> None:
        def add(a: Any, b: Any, out: Any, **_: Any) -> Any:
            assert a is b
            return np.add(a, 0, out=out)

        assert all("elements are wrong" in str(each) for each in wrong_of("one-array-twice", "vecadd", add))

    def test_which_returns_another_array_than_its_output(self) -> None:
        assert wrong_of("out", "vecadd", lambda a, b, out, **_: np.add(a, b, out=out).copy()) == {
            "it returned another array than out"
        }

    @pytest.mark.parametrize(
        ("turned", "words"),
        [
            (list, "it returned list  "),
            (lambda c: c[np.newaxis], "it returned ndarray (1, "),
            (lambda c: c.astype(np.float64), " float64"),
        ],
        ids=["type", "shape", "dtype"],
    )
    def test_which_returns_something_else(self, turned: Callable[[Any], Any], words: str) -> None:
        for wrong in wrong_of("layouts", "vecadd", lambda a, b, **_: turned(a + b)):
            assert wrong is not None
            assert words in wrong

    def test_which_takes_any_inputs_after_those_that_fit(self) -> None:
        """As one does that keeps what it found out of the first call."""
        knows = False

        def add(a: Any, b: Any, out: Any, **_: Any) -> Any:
            nonlocal knows
            if a.dtype == b.dtype == DTYPE and a.shape == b.shape and a.ndim == 1:
                knows = True
                return np.add(a, b, out=out)
            if knows:
                return out
            raise ValueError("it does not fit") if a.dtype == b.dtype == DTYPE else TypeError("it does not fit")

        wrong = wrong_of("unfit-inputs", "vecadd", add)
        assert wrong == {f"it accepted the call, which must end as {error}" for error in ("TypeError", "ValueError")}

    def test_which_changes_what_lies_on_its_device(self) -> None:
        there: list[Any] = []

        def add(a: Any, b: Any, to: str | None = None) -> Any:
            result = a + b
            if to:
                there.append(result)
            elif there:
                there[0][0] += 1
            return result

        (wrong,) = wrong_of("to-device", "vecadd", add)
        assert wrong is not None
        assert wrong.startswith("1 of 33 elements are wrong, the first at [0]: ")
        assert wrong.endswith(", from a result on the device")


class Lacking:
    """A runner whose device has no memory."""

    def run(self, *_: Any) -> None:
        raise WorkerFailed("skipped", "the device has 10 MB")

    def ask(self, *_: Any, **__: Any) -> None:
        raise WorkerFailed("skipped", "the device has 10 MB")


class TestDeviceWithoutMemory:
    """And is wrong where it has none for a small case."""

    LARGE, SMALL = (100_003,), (19,)

    def tally(self, cases: list[Any], run: Callable[[Any], str | None]) -> Tally:
        tally = Tally("numpy", "cpu", "vecadd", "lecture", "float32", "shapes")
        run_cases(tally, VECADD, cases, run)
        return tally

    def test_for_a_large_case_leaves_it_out(self) -> None:
        arenas = Arenas()

        def run(trial: Trial) -> str | None:
            return arenas.run(Lacking(), VECADD_TEXT, answer(VECADD, trial, DTYPE))  # type: ignore[arg-type]  # stands in for a runner

        tally = self.tally(list(of_sizes([self.LARGE, self.SMALL])), run)
        arenas.close()
        assert tally.left_out == [("100003", "the device has 10 MB")]
        assert tally.failures == [("19", "skipped: the device has 10 MB")]

    def test_for_a_large_call_leaves_it_out(self) -> None:
        made = [Call("large", self.LARGE), Call("small", self.SMALL)]
        lacking: Any = Lacking()  # stands in for a runner
        tally = self.tally(made, partial(run_call, lacking, VECADD_TEXT, "float32"))
        assert tally.left_out == [("large", "the device has 10 MB")]
        assert tally.failures == [("small", "skipped: the device has 10 MB")]


def test_the_dtypes_of_all_variants_stand_below_each_other() -> None:
    variants = ("lecture", "loops_reordered")
    told = summary([Tally("cpp", "cpu", "matmul", variant, "float32", "shapes", cases=8) for variant in variants])
    assert [line.index("float32") for line in told[1:]] == [29, 29]


def test_what_was_left_out_is_told() -> None:
    tally = Tally("numpy", "cpu", "vecadd", "lecture", "float32", "shapes", left_out=[("large", "no memory")])
    assert summary([tally])[-1] == "numpy cpu vecadd shapes: large was left out: no memory"


LEAST = 2.0**-149
"""The smallest subnormal number of float32."""


class TestWithoutSubnormals:
    """A target that takes subnormal numbers for zero is excused for these alone."""

    @pytest.mark.parametrize(
        ("results", "holds"),
        [([3 * LEAST, 2], True), ([0, 2], True), ([2 * LEAST, 2], False), ([0, 0], False), ([0, np.nan], False)],
    )
    def test_only_zeros_in_place_of_subnormal_results_pass(self, results: list[float], holds: bool) -> None:
        inputs = [np.array([LEAST, 1], DTYPE), np.array([2 * LEAST, 1], DTYPE)]
        trial = Trial("made up", (2,), lambda *_: inputs)
        case = answer(VECADD, trial, DTYPE)
        outputs = [np.array(results, DTYPE)]
        assert (verdict(_without_flushes(outputs, case), case, VECADD.rule) is None) == holds

    def test_inputs_have_zeros_in_their_place(self) -> None:
        trial = Trial("made up", (4,), lambda *_: [np.array([1e-40, -1e-40, 1.2e-38, np.nan], DTYPE)] * 2)
        for array in without_subnormals(trial).inputs(VECADD, DTYPE):
            assert np.array_equal(array, np.array([0, 0, 1.2e-38, np.nan], DTYPE), equal_nan=True)
            assert np.signbit(array).tolist()[:3] == [False, True, False]


def test_where_sizes_cost_much_the_first_few_are_tried() -> None:
    every = list(of_sizes([(n,) for n in range(1, 100)]))
    assert [case.sizes for case in of_few_sizes(VECADD, every, quick=True, emulated=False)] == [
        (n,) for n in range(1, 10)
    ]
    assert len(of_few_sizes(VECADD, every, quick=False, emulated=False)) == 60
    large = list(of_sizes([(10**8,), (5,)]))
    assert [case.sizes for case in of_few_sizes(VECADD, large, quick=True, emulated=True)] == [(5,)]
    shared = list(of_sizes([(of_kernel("vecadd").shared or ()), (5,)]))
    assert [case.sizes for case in of_few_sizes(VECADD, shared, quick=True, emulated=True)] == [(5,)]
    assert of_few_sizes(VECADD, large, quick=True, emulated=False) == large
