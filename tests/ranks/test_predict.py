"""`predict`: what a rank does is followed without its arrays, costs what the model says, and is said plainly."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_here
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from made_rows import with_work

from py_backends import registry
from py_backends.commands.predict import analysis
from py_backends.commands.predict.analysis import STRONG, WEAK, Model, predictions
from py_backends.commands.predict.picture import describe, draw
from py_backends.conformance.sizes import fits
from py_backends.kernel_text import KernelText
from py_backends.ranks import traffic
from py_backends.ranks.costs import COMPUTING, Machine, whole
from py_backends.ranks.layout import Distributed
from py_backends.ranks.networks import HERE, NETWORKS, Network, network
from py_backends.ranks.outline import Call, Record, outline
from py_backends.results.report import Duration, Estimate, Report, Row, Seconds

pytestmark = pytest.mark.stamped

TEXTS = [text for kernel in registry.kernel_names() for text in registry.kernel_texts(kernel, "mpi").values()]
PLAIN = network("latency=2us,bandwidth=10GB/s,overhead=1us")
assert PLAIN is not None
NO_TIME = {what: ((1.0, Estimate.exactly(0.0)),) for what in ("copies", "rows", "sums")}


def _name(text: KernelText) -> str:
    return f"{text.kernel}-{text.variant}"


def distributed(text: KernelText) -> Distributed:
    return Distributed(text.problem, text.load(), np.dtype(np.float32))


def model(kernel: str, seconds_of_work: float, between: Network = PLAIN, variant: str = "lecture") -> Model:
    """Of a machine whose calls take so long for a unit of work, of whatever sizes, and whose memory takes no time."""
    problem = registry.problem(kernel)
    sizes = problem.default_sizes
    machine = Machine(1, {sizes: Estimate.exactly(seconds_of_work * problem.work(sizes))}, NO_TIME)
    return Model("mpi", kernel, variant, "float32", between, lambda _: machine)


class TestOutline:
    @pytest.mark.parametrize("text", TEXTS, ids=_name)
    @given(ranks=st.integers(1, 24), sizes=st.tuples(*[st.integers(0, 40)] * 3))
    def test_the_calls_of_all_ranks_are_the_kernels_work(
        self, text: KernelText, ranks: int, sizes: tuple[int, ...]
    ) -> None:
        """No element of the output is left out. A rank may compute some that another has too, as heat's do."""
        problem = text.problem
        of_kernel = sizes[: len(problem.parameters)]
        assume(fits(problem, of_kernel) and 0 not in of_kernel)
        kernel = distributed(text)
        found = [outline(kernel, rank, ranks, of_kernel) for rank in range(ranks)]
        done = [
            problem.work(event.sizes)
            for each in found
            for event in each.events
            if isinstance(event, Call) and 0 not in event.sizes
        ]
        assert sum(done) >= problem.work(of_kernel)

    def test_what_is_set_in_one_piece_costs_less_than_rows_of_it(self) -> None:
        recorded = Record()
        made = recorded.array((4, 6), np.dtype(np.float32))
        made[1:3] = made[:, 1:3] = None
        assert recorded.events == [traffic.Traffic(copied=4 * 2 * 6), traffic.Traffic(strided=4 * 4 * 2)]

    def test_one_number_is_added_to_an_array_in_half_the_traffic_of_two_arrays(self) -> None:
        recorded = Record()
        made = recorded.array((4, 6), np.dtype(np.float32))
        made += recorded.array((4, 6), np.dtype(np.float32))
        made += recorded.array((1,), np.dtype(np.float32))
        made += np.float32(2)
        made += recorded.array((1, 6), np.dtype(np.float32))
        of_arrays, of_a_number = traffic.Traffic(added=4 * 4 * 6), traffic.Traffic(added=4 * 4 * 6 / 2)
        assert recorded.events == [of_arrays, of_a_number, of_a_number, of_arrays]

    @pytest.mark.parametrize("text", [each for each in TEXTS if each.kernel != "attention"], ids=_name)
    @given(ranks=st.integers(2, 40), sizes=st.permutations([1009, 211, 103]))
    @settings(max_examples=20)
    def test_no_rank_holds_an_array_of_the_whole(self, text: KernelText, ranks: int, sizes: list[int]) -> None:
        """Else more machines could not hold more. Attention gathers its keys and values, and says so."""
        problem = text.problem
        of_kernel = tuple(sizes[: len(problem.parameters)])
        with pytest.MonkeyPatch.context() as patched:
            held: list[int] = []
            original = Record.array

            def array(record: Record, shape: tuple[int, ...], dtype: Any) -> Any:
                made = original(record, shape, dtype)
                held.append(made.nbytes)
                return made

            patched.setattr(Record, "array", array)
            for rank in {0, 1, ranks - 1}:
                outline(distributed(text), rank, ranks, of_kernel)
        of_others = problem.shapes(tuple(2 * size for size in of_kernel))
        grow = (shape for shape, other in zip(problem.shapes(of_kernel), of_others, strict=True) if shape != other)
        whole = {4 * math.prod(shape) for shape in grow}
        assert held
        assert not whole & set(held)

    @pytest.mark.parametrize(
        ("kernel", "variant", "sizes", "elements"),
        [
            ("vecadd", "lecture", (400,), lambda n: 3 * n / 4),
            ("dot", "lecture", (400,), lambda n: 2 * n / 4 + 2),
            ("scan", "lecture", (400,), lambda n: 2 * n / 4 + 2),
            ("transpose", "lecture", (80, 120), lambda m, n: 3 * m * n / 4),
            ("histogram", "lecture", (400,), lambda n: n / 4 + 512 + 256 / 4),
            ("heat", "lecture", (80, 30, 20), lambda m, n, _: 3 * (m / 4 + 2) * n),
            ("heat", "tuned", (80, 30, 20), lambda m, n, _: 3 * (m / 4 + 2 * 16) * n),
            ("nbody", "lecture", (80, 120), lambda m, n: 9 * m / 4 + 12 * n / 4),
            ("matmul", "lecture", (80, 120, 160), lambda m, n, k: (3 * m * k + k * n + m * n) / 4),
            ("matmul", "tuned", (80, 80, 80), lambda m, n, k: (m * k + k * n) / 2 + m * n / 4),
            ("attention", "lecture", (80, 8, 120), lambda m, d, n: (2 * m + 2 * n) * d / 4 + 2 * n * d),
        ],
    )
    def test_memory_is_that_of_the_formula(
        self, kernel: str, variant: str, sizes: tuple[int, ...], elements: Callable[..., float]
    ) -> None:
        """Of a rank in the middle of four, in docs/predict.md."""
        text = registry.kernel_texts(kernel, "mpi")[variant]
        assert outline(distributed(text), 1, 4, sizes).nbytes == 4 * elements(*sizes)

    def test_a_source_that_computes_with_its_arrays_is_refused(self) -> None:
        """Its work would be left out of the prediction."""
        text = registry.kernel_texts("vecadd", "mpi")["lecture"]

        class Source:
            blocks = staticmethod(text.load().blocks)

            @staticmethod
            def vecadd(_ranks: Any, _add: Any, a: Any, b: Any, c: Any, _n: int) -> None:
                c[...] = a + b

        kernel = Distributed(text.problem, Source, np.dtype(np.float32))  # type: ignore[arg-type]  # it has what is asked
        with pytest.raises(ValueError, match="cannot be followed without its arrays"):
            outline(kernel, 0, 2, (100,))


class TestTraffic:
    """Against the costs of Thakur, Rabenseifner and Gropp, for n bytes on p ranks."""

    @pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8, 16, 100])
    @pytest.mark.parametrize("block", [4, 1 << 10, 1 << 14, 1 << 20])
    def test_gathered_blocks_come_from_all_others(self, ranks: int, block: int) -> None:
        found = traffic.allgather([block] * ranks)
        assert sum(each.times * each.size for each in found.rounds) == pytest.approx((ranks - 1) * block)

    def test_a_ring_takes_a_round_for_each_other_rank(self) -> None:
        assert traffic.allgather([1 << 20] * 100).rounds == (traffic.Round(1 << 20, times=99),)

    def test_small_blocks_double_in_each_round(self) -> None:
        assert len(traffic.allgather([4] * 1024).rounds) == 10
        assert len(traffic.allgather([4] * 1000).rounds) == 10

    def test_sums_of_one_number_take_a_round_for_each_doubling(self) -> None:
        assert sum(each.times for each in traffic.allreduce(1024, 4).rounds) == 10
        assert sum(each.times for each in traffic.allreduce(1025, 4).rounds) == 12

    @pytest.mark.parametrize("ranks", [2, 4, 8, 64])
    @pytest.mark.parametrize("size", [1 << 12, 1 << 24])
    def test_scattered_sums_are_sent_and_added_but_for_the_own_share(self, ranks: int, size: int) -> None:
        found = traffic.reduce_scatter([size // ranks] * ranks)
        expected = size * (ranks - 1) / ranks
        assert sum(each.times * each.size for each in found.rounds) == pytest.approx(expected)
        assert found.added == pytest.approx(expected)

    def test_alone_a_rank_sends_nothing(self) -> None:
        for found in (traffic.allgather([9]), traffic.reduce_scatter([9]), traffic.allreduce(1, 9)):
            assert found == traffic.Traffic()
        assert traffic.alltoall(1, 9) == traffic.Traffic()


class TestNetwork:
    def test_a_message_takes_its_latency_and_its_bytes(self) -> None:
        assert whole(PLAIN.parts(traffic.Round(1e6))).value == pytest.approx(2e-6 + 1e6 / 10e9)

    def test_small_messages_at_once_take_the_overhead_each(self) -> None:
        assert whole(PLAIN.parts(traffic.Round(100.0, messages=100))).value == pytest.approx(101e-6, rel=0.01)

    def test_large_messages_at_once_take_the_time_of_their_bytes(self) -> None:
        assert whole(PLAIN.parts(traffic.Round(1e8, messages=100))).value == pytest.approx(1e8 / 10e9, rel=0.01)

    def test_every_named_one_says_where_its_figures_come_from(self) -> None:
        for each in NETWORKS.values():
            assert each.source
            assert each.latency.low < each.latency.value < each.latency.high


class TestPrediction:
    def test_without_exchanges_efficiency_is_one(self) -> None:
        found = predictions(model("vecadd", 1e-9), (1 << 20,), [1, 16, 1024], [STRONG, WEAK])
        assert [each.efficiency.value for each in found] == pytest.approx([1.0] * 6)
        assert all(each.half_from is None for each in found)

    def test_a_dot_product_pays_for_a_latency_in_each_round(self) -> None:
        """The time is a part of the work, and lg p messages of 4 bytes."""
        n = 1 << 20
        alone = 1e-9 * registry.problem("dot").work((n,))
        for ranks in (2, 16, 1024):
            found = model("dot", 1e-9).prediction(ranks, (n,), STRONG)
            expected = alone / ranks + math.log2(ranks) * (2e-6 + 4 / 10e9)
            assert found.seconds.value == pytest.approx(expected)
            assert found.efficiency.value == pytest.approx(alone / ranks / expected)
            assert found.communicating == pytest.approx(1 - alone / ranks / expected)

    def test_the_efficiency_falls_below_one_half_where_it_says(self) -> None:
        of = model("dot", 1e-9)
        half = of.half_from((1 << 20,), STRONG)
        assert half
        fewer, more = (of.efficiency(ranks, (1 << 20,), STRONG).value for ranks in (half // 2, 2 * half))
        assert fewer > 0.5 > more

    def test_rows_of_neighbours_cost_the_same_for_any_number_of_ranks(self) -> None:
        of, sizes = model("heat", 1e-9), (1 << 14, 1 << 10, 4)
        few, many = (of.launch(ranks, sizes).parts for ranks in (4, 1024))
        for part in ("latency", "bandwidth"):
            assert few[part].value == many[part].value
        assert few["latency"].value == pytest.approx(4 * 2 * 2e-6)

    def test_intervals_hold_their_figures(self) -> None:
        of = dataclasses.replace(model("matmul", 1e-11, NETWORKS["ethernet-25g"], "tuned"))
        for found in predictions(of, (4096,) * 3, [1, 8, 100], [STRONG, WEAK]):
            assert found.seconds.low <= found.seconds.value <= found.seconds.high
            assert found.efficiency.low <= found.efficiency.value <= found.efficiency.high

    def test_what_would_help_is_what_it_waits_for(self) -> None:
        """A dot product waits for latency alone; a transpose of large blocks for bandwidth."""
        helped = model("dot", 1e-10).prediction(1024, (1 << 20,), STRONG).with_help
        assert helped[analysis.HALF_LATENCY] > helped[analysis.DOUBLE_BANDWIDTH]
        helped = model("transpose", 1e-10).prediction(4, (4096, 4096), STRONG).with_help
        assert helped[analysis.DOUBLE_BANDWIDTH] > helped[analysis.HALF_LATENCY]

    @pytest.mark.slow
    def test_ten_thousand_ranks_are_followed_by_their_classes(self) -> None:
        """Not one by one: ranks of all to all would exchange 10^8 messages."""
        for kernel in registry.kernel_names():
            for variant in registry.kernel_texts(kernel, "mpi"):
                sizes = registry.problem(kernel).default_sizes
                assert len(analysis.classes("mpi", kernel, variant, "float32", 10_000, sizes)) <= 24


def node(tmp_path: Path, *rows: Row) -> Path:
    path = tmp_path / "node.json"
    machine = {"cpu": "a CPU", "memory_bytes": 5e6}
    path.write_text(Report("2026-01-01T00:00:00+00:00", "0", machine, {"seed": 1}, list(rows)).to_json())
    return path


def row(backend: str, kernel: str, shape: dict[str, int], seconds: float) -> Row:
    time = Duration(seconds, 0.98 * seconds, 1.02 * seconds, seconds, 30)
    made = Row(kernel, backend, "cpu", "tuned", "float32", shape, "ok", seconds=Seconds(kernel=time), threads=8)
    return with_work(made)


class TestCommand:
    def test_it_predicts_from_results_of_another_machine(self, tmp_path: Path) -> None:
        results = node(tmp_path, row("avx", "dot", {"n": 1 << 20}, 1e-3), row("avx", "dot", {"n": 1 << 10}, 1e-6))
        written = tmp_path / "predicted.json"
        ran = run_here(
            *("predict", "--kernel", "dot", "--shape", f"dot={1 << 20}", "--ranks", "1,1024"),
            *("--network", "latency=2us,bandwidth=10GB/s", "--node", results, "--json", written),
        )
        assert ran.returncode == 0, ran.stderr
        assert "8 threads a rank" in ran.stdout
        found = json.loads(written.read_text())["predictions"]
        assert [(each["scaling"], each["ranks"]) for each in found] == [
            ("strong", 1), ("strong", 1024), ("weak", 1), ("weak", 1024),
        ]  # fmt: skip
        alone, together = (each["parts"]["launch"] for each in found[:2])
        expected = (1e-3 + alone) / 1024 / (1e-6 + 20e-6 + together)
        assert found[1]["efficiency"]["value"] == pytest.approx(expected, rel=0.01)

    def test_it_says_where_a_rank_needs_more_memory_than_there_is(self, tmp_path: Path) -> None:
        results = node(tmp_path, row("avx", "dot", {"n": 1 << 20}, 1e-3))
        arguments = ("predict", "--kernel", "dot", "--ranks", "1,16", "--node", results)
        text = run_here(*arguments, "--shape", "dot=1000000").stdout
        assert "more memory a rank than the 5.00 MB of this machine: at 1 ranks" in text.replace("\n  ", " ")

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--network", "bandwidth=12GB/s"], "has no latency"),
            (["--network", "latency=2us"], "has no bandwidth"),
            (["--network", "latency=2,bandwidth=12GB/s"], "a number above 0 in ns, us, ms, s"),
            (["--network", "latency=2us,bandwidth=0GB/s"], "a number above 0 in MB/s"),
            (["--network", "ethernet"], "name one of ethernet-25g"),
            (["--network", "latency=2us,speed=9GB/s"], "not 'speed'"),
            (["--network", HERE, "--ranks", "4099"], "do not divide"),
            (["--network", HERE, "--ranks", "1"], "give --ranks of 2 or more"),
            (["--threads", "4000"], "give fewer"),
            (["--ranks", "0"], "whole number from 1"),
            (["--shape", "matmul=0"], "no work that ranks could share"),
            (["--variant", "shared_tiles"], "no source of matmul"),
        ],
    )
    def test_bad_input_gets_one_line(self, arguments: Sequence[str], said: str) -> None:
        ran = run_here("predict", *arguments)
        assert ran.returncode == 2
        assert said in ran.stderr
        assert len(ran.stderr.splitlines()) == 1

    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            ([("avx", "vecadd", {"n": 9})], "has no time of dot in float32, only of: vecadd float32"),
            ([("cuda", "dot", {"n": 9})], "no row of dot that a rank could compute by: they compute on the CPU"),
        ],
        ids=["another-kernel", "of-a-gpu"],
    )
    def test_results_that_say_nothing_of_it_get_one_line(
        self, tmp_path: Path, rows: Sequence[tuple[str, str, dict[str, int]]], said: str
    ) -> None:
        results = node(tmp_path, *(row(*each, 1e-3) for each in rows))
        ran = run_here("predict", "--kernel", "dot", "--node", results)
        assert ran.returncode == 2
        assert said in ran.stderr
        assert len(ran.stderr.splitlines()) == 1

    @pytest.mark.parametrize(
        "given", [["--network", HERE, "--ranks", "1,2"], ["--threads", "1"]], ids=["here", "threads"]
    )
    def test_results_of_another_machine_decide_what_this_one_would(self, tmp_path: Path, given: Sequence[str]) -> None:
        results = node(tmp_path, row("avx", "dot", {"n": 9}, 1e-3))
        ran = run_here("predict", "--kernel", "dot", *given, "--node", results)
        assert ran.returncode == 2
        assert "leave out --" in ran.stderr


class TestPicture:
    def test_it_draws_and_tells_each_kind_of_scaling(self) -> None:
        found = predictions(model("dot", 1e-9), (1 << 20,), [1, 16, 1024], [STRONG, WEAK])
        report = Report("", "", {}, {}, predictions=found)
        figure = draw(report)
        assert len(figure.axes) == 2
        assert "efficiency is below one half from about" in describe(report)

    def test_without_predictions_it_says_so(self) -> None:
        with pytest.raises(ValueError, match="run py-backends predict"):
            draw(Report("", "", {}, {}))


@pytest.mark.mpi
class TestHere:
    """Ranks of this machine."""

    @pytest.mark.slow
    def test_two_ranks_are_measured_and_predicted(self, tmp_path: Path) -> None:
        written = tmp_path / "here.json"
        ran = run_here(
            *("predict", "--kernel", "heat", "--shape", "heat=200x100x8", "--ranks", "1,2", "--network", HERE),
            *("--threads", "1", "--budget", "4", "--json", written),
        )
        assert ran.returncode == 0, ran.stderr
        assert "below one half" not in ran.stdout  # nothing is said of more ranks than this machine has
        found = json.loads(written.read_text())["predictions"]
        assert all(math.isfinite(each["seconds"]["value"]) and each["seconds"]["value"] > 0 for each in found)
        assert COMPUTING in found[1]["parts"]
        assert found[1]["parts"]["latency"] > 0

    @pytest.mark.slow
    @pytest.mark.parametrize("text", TEXTS, ids=_name)
    def test_sixty_four_ranks_are_right_and_hold_what_is_said(self, text: KernelText, hold: Hold) -> None:
        """More of them than CPUs: nothing depends on when a rank runs."""
        sizes = {"heat": (130, 40, 5), "matmul": (70, 65, 90), "attention": (70, 33, 90)}.get(text.kernel)
        problem = text.problem
        sizes = sizes or tuple(200 for _ in problem.parameters)
        held = hold(text, 64, sizes)
        kernel = distributed(text)
        assert held == tuple(outline(kernel, rank, 64, sizes).nbytes for rank in range(64))

    @pytest.mark.parametrize(
        ("grid", "sizes"),
        [
            ((1, 1, 3), (20, 31, 200)),
            ((2, 2, 1), (33, 35, 9)),
            pytest.param((1, 3, 1), (20, 50, 31), marks=pytest.mark.slow),
            pytest.param((3, 1, 1), (200, 20, 31), marks=pytest.mark.slow),
            pytest.param((2, 1, 2), (33, 9, 35), marks=pytest.mark.slow),
            pytest.param((1, 2, 2), (9, 33, 35), marks=pytest.mark.slow),
            pytest.param((2, 2, 2), (33, 35, 37), marks=pytest.mark.slow),
        ],
    )
    def test_matmul_is_right_on_every_form_of_grid(
        self, grid: tuple[int, ...], sizes: tuple[int, ...], hold: Hold
    ) -> None:
        """The suite has two ranks, which stand in a line."""
        text, ranks = registry.kernel_texts("matmul", "mpi")["tuned"], math.prod(grid)
        assert text.load().best_grid(ranks, (4, 4, 4), *sizes) == grid
        held = hold(text, ranks, sizes)
        assert held == tuple(outline(distributed(text), rank, ranks, sizes).nbytes for rank in range(ranks))


Hold = Callable[[KernelText, int, tuple[int, ...]], tuple[int, ...]]


@pytest.fixture
def hold() -> Hold:
    """Runs a kernel on ranks of one thread, checks its result, and gives the bytes that each held."""

    def run(text: KernelText, ranks: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
        device: Any = registry.backend("mpi").open(f"{ranks}x1", ranks)
        try:
            launch = device.prepare(text, np.dtype(np.float32))
            problem = text.problem
            inputs = [each.copy() for each in problem.draw(sizes, np.dtype(np.float32), np.random.default_rng(1))]
            output = np.empty(problem.shapes(sizes)[-1], problem.result_dtype(np.dtype(np.float32)))
            buffers = device.place(launch, sizes, [each.reshape(-1) for each in (*inputs, output)])
            launch(buffers, sizes)
            held = device.communication().bytes_held
            device.download(buffers[-1], output.reshape(-1))
            numbers = sizes[len(problem.dimensions) :]
            reference = problem.reference(inputs, *numbers)
            bound = 0.0 if reference.bound is None else reference.bound
            assert (np.abs(output - reference.value) <= bound).all()
            return tuple(held)
        finally:
            device._latest.close()

    return run
