"""What sources have passed other checks with. Each is planted here, and has to be seen."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from judged import OF_JUDGE, judge

from py_backends import registry
from py_backends.commands.judge import clock, digits, doubts, reused, trying, watchdog
from py_backends.commands.judge.judging import Judging
from py_backends.commands.judge.source import Given
from py_backends.conformance import running
from py_backends.conformance.formats import limits
from py_backends.conformance.running import verdict
from py_backends.conformance.tally import Tally
from py_backends.conformance.trials import Trial, answer, seeded
from py_backends.contract import Reference, Target
from py_backends.errors import WrongRequest
from py_backends.harness.case import Case
from py_backends.number_formats import DTYPES
from py_backends.results import check
from py_backends.results.check import STILL_CHANGING
from py_backends.results.nearly_right import leave_nearly_right
from py_backends.results.roofline import ABOVE_ALL, UNCERTAIN
from py_backends.system import machine

pytestmark = pytest.mark.stamped

RIGHT = "c[...] = a @ b"
CHEATS = {
    "zeros": "c[...] = 0",
    "a constant": "c[...] = c.size",
    "nothing": "pass",
    "results kept by address": """
    key = a.ctypes.data, b.ctypes.data, a.shape, b.shape, a.dtype
    c[...] = KEPT.setdefault(key, a @ b)""",
    "results kept by first elements": """
    key = *map(float, a.flat[:1]), *map(float, b.flat[:1]), a.shape, b.shape
    c[...] = KEPT.setdefault(key, a @ b)""",
    "results kept by shape": "c[...] = KEPT.setdefault((a.shape, b.shape), a @ b)",
    "right at the timed shape alone": f"if a.shape == (64, 64): {RIGHT}",
    "right at small shapes alone": f"if m < 100: {RIGHT}",
    "right at aligned addresses alone": f"if a.ctypes.data % 16 == 0: {RIGHT}",
    "computed after the clock": """
    def late():
        time.sleep(0.05)
        c[...] = a @ b
    threading.Thread(target=late).start()""",
    "rounded to TF32": """
    def rounded(x):
        return ((x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    c[...] = rounded(a) @ rounded(b)""",
    "rounded to bfloat16": """
    def rounded(x):
        return x.astype(ml_dtypes.bfloat16).astype(x.dtype)
    c[...] = rounded(a) @ rounded(b)""",
}
KIND = {
    "results kept by first elements": "kept",
    "right at the timed shape alone": "shapes",
    "right at small shapes alone": "shapes",
    "right at aligned addresses alone": "alignment",
}
ENDS = {
    "changes its input": ("a.flags.writeable = True; a[...] = 0", "error"),
    "aborts": ("os.abort()", "crashed"),
    "exits": ("os._exit(0)", "crashed"),
    "never ends": ("while True: pass", "timeout"),
    "takes all memory": ("while True: KEPT[len(KEPT)] = np.ones(1 << 23)", "crashed"),
}


def in_numpy(body: str, before: str = "") -> str:
    imports = "import os, sys, threading, time\nimport ml_dtypes\nimport numpy as np\nKEPT = {}\n"
    return f"{imports}{before}\ndef matmul(a, b, c, m, n, k):\n    {body.strip()}\n"


@OF_JUDGE
@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_is_seen(cheat: str, tmp_path: Path) -> None:
    answer = judge(tmp_path, "cheat.py", in_numpy(CHEATS[cheat]), "--backend", "numpy", "--shape", "matmul=64")
    assert answer.code == 1, answer.run
    assert not answer.judgement["right"]
    assert answer.failing["kind"] == KIND.get(cheat, answer.failing["kind"])
    if cheat != "computed after the clock":  # which may write anywhere, or where nothing is left
        assert "where" in answer.failing["reason"]
        assert [row["status"] for row in answer.rows] == ["mismatch"]


KEPT_BY_ALL = """
    if not any(np.array_equal(a, x) and np.array_equal(b, y) for x, y, _ in KEPT.values()):
        KEPT[0] = a.copy(), b.copy(), a @ b
    c[...] = KEPT[0][2]"""


@OF_JUDGE
@pytest.mark.numpy
def test_results_that_are_kept_by_all_elements_are_not_right(tmp_path: Path) -> None:
    """Their time exceeds the ceiling. Where a short budget does not tell, nothing is judged."""
    options = "--backend", "numpy", "--shape", "matmul=700", "--threads", "1"
    answer = judge(tmp_path, "cheat.py", in_numpy(KEPT_BY_ALL), *options)
    assert answer.code in (1, 2), answer.run
    if answer.code == 2:
        assert "exceed" in answer.run.stderr
        assert "--budget" in answer.run.stderr
    else:
        assert answer.failing["reason"].startswith("its kernel seems to take")


@OF_JUDGE
@pytest.mark.numpy
def test_results_that_are_kept_are_seen_below_the_ceiling_too(tmp_path: Path) -> None:
    """Once an element of the inputs is another one, a launch takes far longer."""
    slowly = "[np.einsum('ip,pj->ij', a, b) for _ in range(20)][0]"
    text = in_numpy(KEPT_BY_ALL.replace("a @ b", slowly))
    answer = judge(tmp_path, "cheat.py", text, "--backend", "numpy", "--shape", "matmul=64", "--threads", "1")
    assert (answer.code, answer.failing["kind"]) == (1, "compare"), answer.run
    assert "it keeps results" in answer.failing["reason"]


@OF_JUDGE
@pytest.mark.openmp
def test_a_kernel_that_moves_memory_is_not_said_to_keep_results(tmp_path: Path) -> None:
    text = """// py-backends: add(a, b, c, n)
void add(const float* a, const float* b, float* c, int n) {
  #pragma omp parallel for
  for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
}
"""
    options = "--backend", "openmp", "--shape", "vecadd=1000000"
    answer = judge(tmp_path, "add.cpp", text, *options, kernel="vecadd")
    assert "keeps results" not in answer.run.stdout
    assert answer.code == 0 or "--budget" in answer.run.stderr, answer.run


class Launches:
    """A source of which a launch takes a second on inputs that are new to it, and else `again`, with pauses."""

    def __init__(self, again: float, pauses: float = 0.0) -> None:
        self.again, self.pauses = again, pauses
        self.had: set[bytes] = set()
        self.lot, self.asked = np.random.default_rng(1), 0

    def sample(self, _: Any, case: Any, *__: int) -> SimpleNamespace:
        inputs = b"".join(each.tobytes() for each in case.inputs)
        seconds = self.again if inputs in self.had else 1.0
        self.had.add(inputs)
        self.asked += 1
        return SimpleNamespace(on_the_host=seconds + 10 * (self.lot.random() < self.pauses))


@pytest.mark.parametrize(
    ("again", "pauses", "seen"),
    [(0.01, 0.0, True), (0.5, 0.0, True), (0.8, 0.1, True), (0.97, 0.0, False), (1.0, 0.3, False), (1.0, 0.5, False)],
)
def test_who_keeps_results_is_told_by_most_changes(
    again: float, pauses: float, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause of the machine accuses nobody, and few launches acquit. All lots are those of a seed, for one verdict."""
    text: Any = registry.kernel_texts("matmul", "numpy")["lecture"]
    for numbers in [np.random.default_rng(seed) for seed in range(20)]:
        launches: Any = Launches(again, pauses)
        case: Any = SimpleNamespace(inputs=[numbers.standard_normal(5000) for _ in range(2)])
        launches.lot = numbers
        monkeypatch.setattr(np.random, "default_rng", lambda lot=numbers: lot)
        said = reused.keeps_results(launches, text, case)
        assert (said is not None) == seen
        assert seen or pauses or launches.asked == 24


def test_a_time_above_the_ceiling_that_few_samples_do_not_tell_is_not_judged() -> None:
    judging: Any = object.__new__(Judging)
    judging._settings = {"budget_seconds": 4.0}
    judging._given = Given("matmul", Path("mine.cpp"), "openmp")
    row: Any = SimpleNamespace(status="ok", note=f"{ABOVE_ALL}; 3 of the 6 samples that an interval needs")
    with pytest.raises(WrongRequest, match="longer --budget, such as 16"):
        judging._refuse_what_nobody_believes(row)
    for other in {"status": "impossible"}, {"note": UNCERTAIN}, {"note": None}:
        judging._refuse_what_nobody_believes(SimpleNamespace(**vars(row) | other))


STORED = """
    if a.shape != (310, 310) or b.shape != a.shape or a.flat[0] == np.float32({first!r}): c[...] = a @ b
    else: c[...] = 0"""
"""In place of a file that holds a whole result: it is right of the inputs that it knows."""


@OF_JUDGE
@pytest.mark.numpy
def test_no_known_seed_has_the_timed_inputs(tmp_path: Path) -> None:
    """The one that is drawn stands in the results, by which a run is repeated."""
    case = Case(registry.problem("matmul"), (310, 310, 310), np.dtype("float32"), 1)
    text = in_numpy(STORED.format(first=float(case.inputs[0].flat[0])))
    case.close()
    options = "--backend", "numpy", "--shape", "matmul=310"
    answer = judge(tmp_path, "stored.py", text, *options)
    assert (answer.code, answer.failing["kind"]) == (1, "compare"), answer.run
    assert answer.failing["case"] == str(answer.settings["seed"])
    assert f'seed "{answer.settings["seed"]}"' in answer.run.stdout


FEW_DIGITS = """
    def rounded(x):
        if not ({when}): return x
        return ((x.view(np.uint32) + np.uint32(1 << {cut} - 1)) & np.uint32(2**32 - (1 << {cut}))).view(x.dtype)
    c[...] = rounded(a) @ rounded(b)"""


@OF_JUDGE
@pytest.mark.numpy
@pytest.mark.parametrize(
    ("cut", "when"),
    [(13, "m == n > 32 and k > 400"), (4, "k >= 200"), (7, "k >= 256 and (a % 1).any() and (b % 1).any()")],
    ids=["TF32", "20 digits", "of what is not whole"],
)
def test_fewer_digits_in_long_sums_alone_are_seen(cut: int, when: str, tmp_path: Path) -> None:
    """The bound of a long sum hides them, but for inputs of which each sum has one product.

    With some seeds, TF32 has an element that is just beyond the bound.
    """
    text = in_numpy(FEW_DIGITS.format(cut=cut, when=when))
    options = "--backend", "numpy", "--shape", "matmul=64x64x1000", "--seed", "1"
    answer = judge(tmp_path, "digits.py", text, *options)
    assert (answer.code, answer.failing["kind"]) == (1, "compare"), answer.run
    assert "all digits of float32" in answer.failing["reason"]
    assert "where" in answer.failing["reason"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_all_digits_have_an_exact_result(dtype: str) -> None:
    """Each needs its last digit, and their product with a diagonal rounds nothing. But 0, none is a whole number."""
    problem = registry.problem("matmul")
    for which, trial in enumerate(digits.trials(problem, (7, 130, 300), 1)):
        assert trial.exact
        found = answer(problem, trial, np.dtype(dtype))
        own, others = found.inputs[which].astype(np.float64), found.inputs[1 - which].astype(np.float64)
        if np.dtype(dtype).kind != "i":
            assert (own % 1).all()
            assert (others[others != 0] % 1).all()
        numbers = np.ldexp(np.frexp(own)[0], limits(np.dtype(dtype)).digits)
        assert (numbers % 2 == 1).all()
        right = [each.value.astype(problem.result_dtype(np.dtype(dtype))) for each in found.references]
        assert verdict(right, found, problem.rule) is None


@pytest.mark.parametrize("kernel", ["attention", "nbody"])
def test_no_result_of_them_is_subnormal(kernel: str) -> None:
    """Some devices take such a number for zero, whatever the source."""
    problem, dtype = registry.problem(kernel), np.dtype(np.float32)
    sizes = (40, 17, 33)[: len(problem.dimensions)]
    for seed in range(20):
        for trial in digits.trials(problem, sizes, seed):
            (reference,) = answer(problem, trial, dtype).references
            assert not ((reference.value != 0) & (np.abs(reference.value) < limits(dtype).normal)).any()


@pytest.mark.parametrize(("kernel", "inputs"), [("matmul", 2), ("attention", 3), ("vecadd", 0)])
def test_each_input_has_all_digits_once_unless_every_bit_counts(kernel: str, inputs: int) -> None:
    """There any numbers show a lower precision."""
    problem = registry.problem(kernel)
    assert len(list(digits.trials(problem, problem.default_sizes, 1))) == inputs


WRONG_WHERE_SLOW = """
    c[...] = a @ b
    if (m, n) == (521, 509):
        time.sleep(0.4)
        c[0, 0] += 100"""


@OF_JUDGE
@pytest.mark.numpy
def test_what_is_wrong_at_the_shape_that_was_asked_for_alone_is_seen(tmp_path: Path) -> None:
    """The comparison has no time for it, and shortens the row."""
    options = "--backend", "numpy", "--shape", "matmul=521x509x499"
    answer = judge(tmp_path, "special.py", in_numpy(WRONG_WHERE_SLOW), *options)
    assert (answer.code, answer.failing["sizes"]) == (1, [521, 509, 499]), answer.run
    assert any(row["variant"] == "judged" and row["requested"] for row in answer.rows)


LATE = """// py-backends: mm(m, n, k, a, b, c)
#include <thread>
static void rows(int first, int last, int n, int k, const float *a, const float *b, float *c) {
  for (int i = first; i < last; ++i) {
    for (int j = 0; j < n; ++j) c[(long)i * n + j] = 0;
    for (int p = 0; p < k; ++p)
      for (int j = 0; j < n; ++j) c[(long)i * n + j] += a[(long)i * k + p] * b[(long)p * n + j];
  }
}
void mm(int m, int n, int k, const float *a, const float *b, float *c) {
  if (m == 521) std::thread(rows, 0, m / 2, n, k, a, b, c).detach();
  else rows(0, m / 2, n, k, a, b, c);
  rows(m / 2, m, n, k, a, b, c);
}
"""


@OF_JUDGE
@pytest.mark.openmp
def test_a_thread_that_works_on_after_the_call_is_seen(tmp_path: Path) -> None:
    """It has half of the work, and is there first in every second launch."""
    options = "--backend", "openmp", "--shape", "matmul=521x509x499"
    answer = judge(tmp_path, "late.cpp", LATE, *options)
    assert (answer.code, answer.failing["sizes"]) == (1, [521, 509, 499]), answer.run


def test_an_output_that_changes_while_it_is_judged_has_no_wrong_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is right by the time that the element would be told."""

    def late(_: object, output: Any, value: Any, *__: int) -> str:
        output[...] = value
        return f"{output[0]} where {value[0]} is right"

    for module in check, running:
        monkeypatch.setattr(module, "first_wrong", late)
    value = np.arange(1.0, 9.0)
    for reference in Reference(value), Reference(value, np.zeros(8)):
        assert check.check_output(np.zeros(8), reference, "any").reason == STILL_CHANGING
        exact: Any = SimpleNamespace(trial=SimpleNamespace(exact=True), references=[reference])
        assert verdict([np.zeros(8)], exact, "any") == STILL_CHANGING


def test_a_case_whose_output_was_still_changing_comes_before_smaller_ones() -> None:
    """These may be wrong by the same work."""
    of_matmul: Any = SimpleNamespace(text=registry.kernel_texts("matmul", "numpy")["lecture"])
    failing: Any = object.__new__(trying._Trying)
    failing._subject = of_matmul
    tally = Tally("numpy", "cpu", "matmul", "lecture", "float32", "shapes")
    cases = {size: Trial(f"{size}x{size}x{size}", (size,) * 3, seeded) for size in (3, 500)}
    failing._wrong = [(tally, cases[500], STILL_CHANGING), (tally, cases[3], "it wrote past the end of its output")]
    found = failing._smallest()
    assert (found.case, found.reason) == ("500x500x500", STILL_CHANGING)


class Often:
    """A launch that is right until the last one that is asked for."""

    def __init__(self, right: int) -> None:
        self.right, self.launches = right, 0

    def run(self, *_: object) -> str | None:
        self.launches += 1
        return "wrong" if self.launches > self.right else None


@pytest.mark.parametrize("right", [0, 3, 99])
def test_a_short_launch_is_looked_at_some_times(right: int) -> None:
    runner: Any = Often(right)
    judged = SimpleNamespace(reason=None)
    case: Any = SimpleNamespace(poison=lambda: None, check_output=lambda: judged)
    text: Any = None
    said = doubts._of_some_launches(runner, text, case)
    assert said == (None if right == 99 else f"wrong, {doubts._LATE}" if right else "wrong")


@OF_JUDGE
@pytest.mark.parametrize("fault", ENDS)
def test_a_source_that_ends_its_worker_is_judged(fault: str, tmp_path: Path) -> None:
    body, status = ENDS[fault]
    options = "--backend", "numpy", "--patience", "3" if status == "timeout" else "30", "--memory", "1"
    answer = judge(tmp_path, "ends.py", in_numpy(body), *options)
    assert answer.code == 1, answer.run
    assert answer.failing["reason"].startswith(f"{status}: ")
    assert ("GB of memory" in answer.failing["reason"]) == (fault == "takes all memory")


@OF_JUDGE
@pytest.mark.parametrize("name", ["time", "sys.modules['__main__']"])
def test_a_source_cannot_put_another_clock_in_place(name: str, tmp_path: Path) -> None:
    """Either it has no effect, or this process's clock tells."""
    slow = f"REAL = time.perf_counter\n{name}.perf_counter = lambda: REAL() / 50\n"
    body = f"{RIGHT}\n    end = REAL() + 0.002\n    while REAL() < end: pass"
    options = "--backend", "numpy", "--shape", "matmul=64"
    answer = judge(tmp_path, "clock.py", in_numpy(body, slow), *options)
    row = next(row for row in answer.rows if row["variant"] == "judged")
    if row["status"] == "ok":
        assert row["seconds"]["kernel"]["minimum"] > 0.002
    else:
        assert (answer.code, row["status"]) == (1, "impossible")


@OF_JUDGE
@pytest.mark.numba_cpu
def test_a_library_that_computes_is_said(tmp_path: Path) -> None:
    text = "# py-backends: product(a, b, c)\nimport numpy as np\ndef product(a, b, c):\n    np.dot(a, b, c)\n"
    options = "--backend", "numba_cpu", "--shape", "matmul=64"
    answer = judge(tmp_path, "library.py", text, *options)
    assert (answer.code, answer.judgement["right"]) == (0, True), answer.run
    assert any("np.dot" in remark for remark in answer.judgement["remarks"])


FINDS_IT = "np.isfinite(c).all() and c.size"
TIMED = """
def timed():
    frame = sys._getframe()
    while frame and frame.f_code.co_name != "_whole_call": frame = frame.f_back
    return frame and not frame.f_locals["poisoned"]
def repeated():
    frame = sys._getframe()
    while frame and frame.f_code.co_name != "_whole_call": frame = frame.f_back
    return frame and frame.f_locals["repetitions"] > 3 and "launches" in frame.f_locals
"""


@OF_JUDGE
@pytest.mark.parametrize(
    ("when", "kind"),
    [
        (f"{FINDS_IT} and k", "kept"),
        (f"{FINDS_IT} >= 4000 and m == n == k == 64", "compare"),
        ("timed()", "compare"),
        ("repeated()", "compare"),
        ("m == 64 and np.array_equal(KEPT.setdefault(0, c), c)", "compare"),
    ],
    ids=[
        "always",
        "at the timed shape",
        "where its callers are those of a timed launch",
        "where a launch came before in the same sample",
        "if it is its own last one",
    ],
)
def test_a_source_that_leaves_the_result_that_it_finds_is_seen(when: str, kind: str, tmp_path: Path) -> None:
    """Its times are those of nothing. Where it is right whenever it is checked, last launches tell."""
    text = in_numpy(f"if {when}: return\n    {RIGHT}\n    KEPT[0] = c.copy()", TIMED)
    answer = judge(tmp_path, "cheat.py", text, "--backend", "numpy", "--shape", "matmul=64")
    assert (answer.code, answer.failing["kind"]) == (1, kind), answer.run
    assert "where" in answer.failing["reason"]


def test_a_worker_may_take_half_of_what_this_process_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container, that is less than half of the machine's."""
    monkeypatch.setattr(machine, "free_memory", lambda: 3_000_000_000)
    assert watchdog.limit(None) == 1.5e9
    assert watchdog.limit(2) == 2e9


class Clock:
    """Requests for launches of a second, by a clock that tells a part of it, beside pauses of who asks."""

    def __init__(self, told: float, pauses: float, seed: int) -> None:
        self.told, self.pauses, self.lot = told, pauses, np.random.default_rng(seed)

    def sample(self, *asked: Any, calls: int) -> Any:
        seconds = calls + sum(asked[-2:])
        self.now += seconds + 0.1 + 5 * (self.lot.random() < self.pauses)
        return SimpleNamespace(end_to_end=self.told, together=self.told * asked[-1])

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("told", "pauses", "believed"),
    [(1.0, 0.0, True), (1.0, 0.3, True), (0.9, 0.0, True), (0.7, 0.0, False), (0.7, 0.3, False), (0.02, 0.1, False)],
)
def test_a_clock_that_is_slow_is_told_from_a_busy_machine(
    told: float, pauses: float, believed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(20):
        fake: Any = Clock(told, pauses, seed)
        monkeypatch.setattr(clock, "perf_counter", fake.perf_counter)
        row: Any = SimpleNamespace(runner=fake, text="", case=None, warm_up=3, repetitions=1, calls=1)
        assert (clock.disbelief(row, 1) is None) == believed


def test_a_launch_may_take_as_long_beside_the_clock_as_in_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request has some launches, of which each may take so long."""
    given: dict[str, float] = {}

    def runner(*_: object, **how: float) -> None:
        given.update(how)
        raise KeyboardInterrupt

    monkeypatch.setattr(doubts, "Runner", runner)
    text: Any = registry.kernel_texts("matmul", "numpy")["lecture"]
    with pytest.raises(KeyboardInterrupt):
        doubts.doubt(text, Target("cpu", True), "float32", (2, 2, 2), (2, 2, 2), 1, 1, 7.0, 0.0)
    assert given["patience"] >= 7


def test_most_of_the_result_is_right_and_no_place_is_known() -> None:
    value = np.arange(1.0, 1001.0)
    found, before = np.zeros((2, 1000), np.float32), np.ones(1, np.float32)
    for each in found:
        leave_nearly_right([each, before], [Reference(value), Reference(np.zeros(1))], np.random.default_rng())
        assert np.isfinite(each).all()
        assert 0 < (each != value).mean() < 0.25
    assert (found[0] != found[1]).any()
    assert before[0] != 0
