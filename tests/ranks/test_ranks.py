"""Arrays in blocks, and ranks: what they share out and move, and what they are to the process that has started them."""

from __future__ import annotations

import json
import math
import queue
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from commands import CLONE, copy_clone, environment, run_python
from faults import scratch
from faults.seen import WRONG_ON_RANKS
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from py_backends import registry
from py_backends.conformance.sizes import fits
from py_backends.errors import BackendUnavailable
from py_backends.harness.interference import our_processes
from py_backends.kernel_text import KernelText
from py_backends.ranks import _LONGEST_PATH, ENDINGS, SOCKET, endings, exchanges, new_folder
from py_backends.ranks.communicator import CountingCommunicator
from py_backends.ranks.layout import Distributed
from py_backends.ranks.mpi import IN_PLACE, PROC_NULL, Communicator, Create_subarray, check_grid
from py_backends.ranks.outline import Record, _Recorder, record

pytestmark = [pytest.mark.mpi, pytest.mark.stamped]

SIZES = st.integers(0, 40) | st.integers(0, 3000)
MATMUL = registry.kernel_texts("matmul", "mpi")["tuned"]
AROUND = [
    registry.kernel_texts(kernel, "mpi")[variant]
    for kernel, variant in (("heat", "lecture"), ("heat", "tuned"), ("matmul", "lecture"), ("nbody", "lecture"))
]
"""Sources whose ranks send to one another by `Sendrecv` alone."""
TEXTS = [text for kernel in registry.kernel_names() for text in registry.kernel_texts(kernel, "mpi").values()]


def owners(shape: Sequence[int], boxes: Sequence[Any]) -> Any:
    """How many boxes each element of an array lies in; by its corners alone where the array is large."""
    count = np.zeros(shape, np.int32)
    for box in boxes:
        assert all(0 <= each.start <= each.stop <= size for each, size in zip(box, shape, strict=True))
        count[tuple(box)] += 1
    return count


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text.kernel}-{text.variant}")
@given(
    ranks=st.integers(1, 24),
    sizes=st.tuples(*[st.integers(0, 40)] * 3),
    widths=st.sampled_from([(4, 4, 4), (2, 2, 4), (1, 1, 4)]),
)
def test_every_element_has_one_owner(text: KernelText, ranks: int, sizes: tuple[int, ...], widths: Any) -> None:
    of_kernel = sizes[: len(text.problem.parameters)]
    assume(fits(text.problem, of_kernel))
    boxes = [text.load().blocks(rank, ranks, widths, *of_kernel) for rank in range(ranks)]
    for shape, of_array in zip(text.problem.shapes(of_kernel), zip(*boxes, strict=True), strict=True):
        assert not shape or (owners(shape, of_array) == 1).all()


@given(ranks=st.integers(1, 24), sizes=st.tuples(*[st.integers(0, 40)] * 3))
def test_what_a_rank_holds_lies_in_what_it_needs_as_whole_rows(ranks: int, sizes: tuple[int, int, int]) -> None:
    """So that MPI can fill in the others' shares where they belong."""
    module, widths = MATMUL.load(), (4, 4, 4)
    for rank in range(ranks):
        for held, needed in zip(
            *(of(rank, ranks, widths, *sizes) for of in (module.blocks, module.needs)), strict=True
        ):
            whole = np.empty([each.stop - each.start for each in needed])
            share = whole[tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(held, needed, strict=True))]
            assert share.shape == tuple(each.stop - each.start for each in held)
            assert share.flags.c_contiguous


class TestExchanges:
    """What ranks send by each function, against the messages of its algorithm."""

    @given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=9))
    def test_gathered_blocks_go_around_a_ring(self, counts: list[int]) -> None:
        exchange, ranks = exchanges.Allgatherv(tuple(counts)), len(counts)
        sent = [0] * ranks
        for step, rank in product(range(ranks - 1), range(ranks)):
            sent[rank] += counts[(rank - step) % ranks]  # at first its own, then what came
        assert [exchange.sent(rank) for rank in range(ranks)] == sent

    def test_a_block_that_lies_in_its_place_is_not_copied(self) -> None:
        blocks, whole = (8, 16, 24), np.zeros(6)
        ranks = Recorded(1, 3)
        ranks.Allgatherv(np.zeros(2), (whole, (1, 2, 3)))
        ranks.Allgatherv(IN_PLACE, (whole, (1, 2, 3)))
        assert ranks.exchanges == [exchanges.Allgatherv(blocks), exchanges.Allgatherv(blocks, in_place=True)]
        copied, in_place = (exchange.traffic(1) for exchange in ranks.exchanges)
        assert copied.copied - in_place.copied == 16
        assert copied.rounds == in_place.rounds

    @given(ranks=st.integers(1, 40))
    def test_a_sum_for_all_takes_as_many_messages_as_its_rounds(self, ranks: int) -> None:
        """Who holds whose elements, message by message: at the end all have all."""
        exchange, sent = exchanges.Allreduce(ranks, 3 * 8), [0] * ranks
        held = [{rank} for rank in range(ranks)]

        def send(to: int, by: int) -> None:
            sent[by] += 3 * 8
            held[to] = held[to] | before[by]

        power = 1 << (ranks.bit_length() - 1)
        paired = 2 * (ranks - power)
        before = list(held)
        for even in range(0, paired, 2):
            send(even + 1, even)
        active = [*range(1, paired, 2), *range(paired, ranks)]
        distance = 1
        while distance < power:
            before = list(held)
            for place, rank in enumerate(active):
                send(active[place ^ distance], rank)
            distance *= 2
        before = list(held)
        for even in range(0, paired, 2):
            send(even, even + 1)
        assert all(each == set(range(ranks)) for each in held)
        assert [exchange.sent(rank) for rank in range(ranks)] == sent

    @given(ranks=st.integers(1, 40))
    def test_the_sums_of_those_before_come_in_log_rounds(self, ranks: int) -> None:
        """Who has heard of whom, message by message: at the end each has the sum of all before it, and of no other."""
        exchange, sent = exchanges.Exscan(ranks, 3 * 8), [0] * ranks
        heard, found = [{rank} for rank in range(ranks)], [set[int]() for _ in range(ranks)]
        distance = 1
        while distance < ranks:
            before = list(heard)
            for rank in range(ranks):
                if (other := rank ^ distance) < ranks:
                    sent[rank] += 3 * 8
                    heard[rank] = heard[rank] | before[other]
                    found[rank] |= before[other] if other < rank else set()
            distance *= 2
        assert found == [set(range(rank)) for rank in range(ranks)]
        assert [exchange.sent(rank) for rank in range(ranks)] == sent
        assert [sum(each.times * each.size for each in exchange.traffic(rank).rounds) for rank in range(ranks)] == sent

    def test_shares_of_a_sum_come_from_all_others(self) -> None:
        assert [exchanges.Reduce_scatter((4, 8, 0)).sent(rank) for rank in range(3)] == [8, 4, 12]

    @pytest.mark.parametrize(("dest", "sent"), [(0, 12), (PROC_NULL, 0), (1, 0)], ids=["another", "nobody", "itself"])
    def test_what_nobody_else_gets_is_not_counted(self, dest: int, sent: int) -> None:
        ranks = Recorded(1, 2)
        ranks.Sendrecv(np.zeros(3, "float32"), dest, recvbuf=np.zeros(5, "float32"), source=0)
        (exchange,) = ranks.exchanges
        assert exchange.sent(1) == sent
        assert sum(each.size for each in exchange.traffic(1).rounds) == 20, "it waits for what comes"

    def test_from_nobody_nothing_comes(self) -> None:
        ranks = Recorded(1, 2)
        ranks.Sendrecv(np.zeros(0), 0, recvbuf=np.zeros(5), source=PROC_NULL)
        assert [each.size for each in ranks.exchanges[0].traffic(1).rounds] == [0]

    def test_an_empty_message_takes_its_time(self) -> None:
        """A rank without a share still waits for what comes: it was free in predictions."""
        assert len(exchanges.Sendrecv(1, 2, 0, 0).traffic(0).rounds) == 1
        assert not exchanges.Sendrecv(PROC_NULL, PROC_NULL, 12, 0).traffic(0).rounds

    def test_what_ranks_cannot_do_is_said_where_it_is_asked_for(self) -> None:
        """In a launch it would end all ranks, and a prediction would pass it over."""
        with pytest.raises(ValueError, match="by SUM, not by 'sum'"):
            Recorded(0, 2).Allreduce(np.zeros(1), np.zeros(1), op="sum")
        for dims in (2, 1), (2, 3):
            with pytest.raises(ValueError, match="has not 4 places"):
                check_grid(dims, 4)

    def test_what_is_sent_in_place_is_as_long_as_what_comes(self) -> None:
        """It was asked of the word `IN_PLACE`, which has no length."""
        ranks, sums = Recorded(0, 4), np.zeros(5)
        ranks.Allreduce(IN_PLACE, sums)
        ranks.Exscan(IN_PLACE, sums)
        assert ranks.exchanges == [exchanges.Allreduce(4, 40), exchanges.Exscan(4, 40)]

    def test_of_parts_for_all_the_own_one_stays(self) -> None:
        """From 4 rows of 6 to 3 columns of 8, on two ranks. Only the columns are not in one piece."""
        ranks = Recorded(1, 2)
        rows, columns = np.zeros((4, 6), "float16"), np.zeros((8, 3), "float16")
        sent = [Create_subarray((4, 6), (4, 3), (0, 3 * rank)) for rank in range(2)]
        received = [Create_subarray((8, 3), (4, 3), (4 * rank, 0)) for rank in range(2)]
        ranks.Alltoallw((rows, sent), (columns, received))
        (exchange,) = ranks.exchanges
        assert exchange.sent(1) == 4 * 3 * 2
        traffic = exchange.traffic(1)
        assert (traffic.copied, traffic.strided) == (4 * 3 * 2, 4 * 3 * 2)

    def test_a_buffer_lies_in_one_piece(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One element cut out of rows does, whatever its strides. A column does not, and MPI would send its row."""

        def sendrecv(going: Any, _dest: int, recvbuf: Any, **_source: int) -> None:
            recvbuf[...] = going

        monkeypatch.setattr(exchanges, "_mpi", lambda: SimpleNamespace(PROC_NULL=PROC_NULL))
        line: Any = SimpleNamespace(Sendrecv=sendrecv)
        going, coming = (np.full((4, 4), number, "float32")[:1, ::2][:, :1] for number in (3, 0))
        exchanges.Sendrecv(1, 1, 4, 4).run(line, going, coming)
        assert coming == 3
        with pytest.raises(ValueError, match="in one piece"):
            exchanges.Sendrecv(1, 1, 8, 8).run(line, np.zeros((2, 2), "float32")[:, :1], np.zeros(2, "float32"))


def test_what_ranks_communicate_is_counted_with_all_that_are_made_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that moves by three seconds in each exchange."""
    now = [0.0]
    line: Any = SimpleNamespace(rank=1, size=2)
    line.Allreduce = lambda *_: now.__setitem__(0, now[0] + 3.0)
    line.Create_cart = lambda _: SimpleNamespace(Sub=lambda _: line)
    monkeypatch.setattr("py_backends.ranks.communicator.perf_counter", lambda: now[0])
    monkeypatch.setattr("py_backends.ranks.exchanges._sent", lambda own: own)
    monkeypatch.setattr("py_backends.ranks.exchanges._operation", lambda name: name)
    ranks = CountingCommunicator(line)
    assert (ranks.tally.seconds, ranks.tally.sent) == (0.0, 0)
    for among in (ranks, ranks, ranks.Create_cart((2, 1)).Sub((True, False))):
        among.Allreduce(np.ones(4), np.ones(4))
    assert (ranks.tally.seconds, ranks.tally.sent) == (9.0, 3 * 32)


def test_all_communicators_are_given_back_the_ones_within_others_first() -> None:
    """MPI has a few thousand of them for a process."""
    freed: list[str] = []

    def made(name: str) -> Any:
        return SimpleNamespace(
            rank=0,
            size=4,
            Free=lambda: freed.append(name),
            Create_cart=lambda dims: made(f"grid {dims}"),
            Sub=lambda remain: made(f"{name}, part {remain}"),
        )

    ranks = CountingCommunicator(made("all"))
    ranks.Create_cart((2, 2)).Sub((True, False))
    ranks.free()
    assert freed == ["grid (2, 2), part [True, False]", "grid (2, 2)", "all"]


class Recorded(Communicator):
    """What methods of MPI ask for."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size, self.exchanges = rank, size, []

    exchanges: list[exchanges.Exchange]

    def carry_out(self, exchange: exchanges.Exchange, *buffers: Any) -> None:
        self.exchanges.append(exchange)

    empty = Create_cart = None  # type: ignore[assignment]  # nothing here asks for them


class Together:
    """Ranks as threads, whose messages meet: a mailbox for each pair, one message at a time."""

    def __init__(self, ranks: int) -> None:
        self.size = ranks
        self.boxes: dict[tuple[int, int], queue.Queue[Any]] = {
            pair: queue.Queue() for pair in product(range(ranks), repeat=2)
        }


class Thread(Communicator):
    """One of them."""

    def __init__(self, rank: int, together: Together) -> None:
        self.rank, self.size, self._boxes, self.counted = rank, together.size, together.boxes, 0

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        return np.full(shape, 99, dtype)

    Create_cart = None  # type: ignore[assignment]  # nothing here asks for it

    def carry_out(self, exchange: exchanges.Exchange, *buffers: Any) -> None:
        sent, received = buffers
        assert isinstance(exchange, exchanges.Sendrecv)
        if exchange.dest != PROC_NULL:
            self._boxes[self.rank, exchange.dest].put(sent.copy())
        if exchange.source != PROC_NULL:
            came = self._boxes[exchange.source, self.rank].get(timeout=10)
            assert came.shape == received.shape, "what comes is as large as the place that it has"
            received[...] = came
        self.counted += exchange.sent(self.rank)


@pytest.mark.parametrize("text", AROUND, ids=lambda text: f"{text.kernel}-{text.variant}")
@given(ranks=st.integers(1, 7), sizes=st.tuples(*[st.integers(1, 12)] * 3))
@settings(max_examples=20, deadline=None)
def test_what_goes_around_ranks_comes_to_each(text: KernelText, ranks: int, sizes: tuple[int, ...]) -> None:
    """On ranks that are threads: the answer, and what is counted, of shares of any sizes."""
    problem, module, sizes = text.problem, text.load(), sizes[: len(text.problem.parameters)]
    inputs = list(problem.draw(sizes, np.dtype(np.float64), np.random.default_rng(1)))
    output = np.full(problem.shapes(sizes)[-1], np.nan)
    together = Together(ranks)

    numbers = dict(zip(problem.numbers, sizes[len(problem.dimensions) :], strict=True))

    def local(*arrays: Any, **given: int) -> None:
        arrays[-1][...] = problem.reference(arrays[:-1], **{**numbers, **given}).value

    def run(rank: int) -> int:
        ours = Thread(rank, together)
        boxes = getattr(module, "needs", module.blocks)(rank, ranks, (8,) * (len(inputs) + 1), *sizes)
        blocks = [array[box].copy() for array, box in zip((*inputs, output), boxes, strict=True)]
        getattr(module, text.kernel)(ours, local, *blocks, *sizes)
        own = module.blocks(rank, ranks, (8,) * (len(inputs) + 1), *sizes)[-1]
        output[own] = blocks[-1][
            tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(own, boxes[-1], strict=True))
        ]
        return ours.counted

    with ThreadPoolExecutor(ranks) as pool:
        counted = list(pool.map(run, range(ranks)))
    np.testing.assert_allclose(output, problem.reference(inputs, **numbers).value, atol=1e-12)
    for rank in range(ranks):
        in_outline = record(Distributed(problem, module, np.dtype(np.float64)), rank, ranks, sizes)
        assert counted[rank] == sum(exchange.sent(rank) for _, _, exchange in in_outline.exchanges)


@given(ranks=st.integers(1, 200), sizes=st.tuples(SIZES, SIZES, SIZES))
def test_a_grid_has_a_place_for_every_rank(ranks: int, sizes: tuple[int, int, int]) -> None:
    grid = MATMUL.load().best_grid(ranks, (4, 4, 4), *sizes)
    assert math.prod(grid) == ranks
    assert all(isinstance(along, int) and along >= 1 for along in grid)


@pytest.mark.parametrize(
    ("ranks", "sizes", "grid"),
    [
        (8, (4096, 4096, 4096), (2, 2, 2)),
        (4, (65536, 256, 256), (4, 1, 1)),  # a much longer than b: it stays where it is
        (4, (256, 65536, 256), (1, 4, 1)),
        (4, (256, 256, 65536), (1, 1, 4)),
        (1, (5, 7, 9), (1, 1, 1)),
        (2, (1024, 1024, 1024), (1, 2, 1)),  # all three send as much: products are written where they belong
        (4, (1024, 1024, 1024), (2, 2, 1)),
    ],
)
def test_the_grid_cuts_what_is_long(ranks: int, sizes: tuple[int, int, int], grid: tuple[int, ...]) -> None:
    assert MATMUL.load().best_grid(ranks, (4, 4, 4), *sizes) == grid


@pytest.mark.parametrize("ranks", [4, 12, 30])
def test_all_ranks_of_an_exchange_name_the_same_first_one(ranks: int) -> None:
    """By it a simulation of all ranks finds those that exchange with one another."""
    kernel = Distributed(MATMUL.problem, MATMUL.load(), np.dtype(np.float32))
    recorded = [record(kernel, rank, ranks, (120, 120, 120)).exchanges for rank in range(ranks)]
    for step in zip(*recorded, strict=True):
        members: dict[int, list[int]] = {}
        for rank, (first, size, _) in enumerate(step):
            members.setdefault(first, []).append(rank)
            assert size == step[first][1]
        assert all(first == min(those) and len(those) == step[first][1] for first, those in members.items())


@pytest.mark.parametrize("remain", list(product((False, True), repeat=3)))
def test_a_part_of_a_grid_numbers_its_ranks_as_mpi_does(remain: tuple[bool, ...]) -> None:
    """Row by row, in the dimensions that remain."""
    dims = (2, 3, 2)
    left = [range(size) for size, remains in zip(dims, remain, strict=True) if remains]
    numbers = {place: number for number, place in enumerate(product(*left))}
    for rank, places in enumerate(product(*map(range, dims))):
        part = _Recorder(rank, 12, Record()).Create_cart(dims).Sub(remain)
        place = tuple(at for at, remains in zip(places, remain, strict=True) if remains)
        assert (part.rank, part.size) == (numbers[place], len(numbers))


@settings(max_examples=50)
@given(ranks=st.integers(1, 64), sizes=st.tuples(*[st.integers(1, 2000)] * 3))
def test_what_a_grid_sends_is_no_less_than_the_bound(ranks: int, sizes: tuple[int, int, int]) -> None:
    """Where each rank has work as large as another's, on which the bound rests."""
    sizes = tuple(size * ranks for size in sizes)  # which every grid divides
    kernel = Distributed(MATMUL.problem, MATMUL.load(), np.dtype(np.float32))
    sent = sum(
        exchange.sent(among - 1)  # the last rank is the last one of each line
        for _, among, exchange in record(kernel, ranks - 1, ranks, sizes).exchanges
    )
    least = MATMUL.problem.least_communication(sizes, np.dtype(np.float32), ranks)
    assert sent >= least * (1 - 1e-9)


@pytest.mark.parametrize(
    ("ranks", "sizes"),
    # m >= n >= k of the paper are the sizes in any order here: one, two and three dimensions of the grid.
    [(3, (1200, 200, 100)), (36, (1200, 200, 100)), (512, (1200, 200, 100)), (1, (7, 8, 9)), (6, (1200, 200, 100))],
)
def test_the_bound_is_that_of_the_paper(ranks: int, sizes: tuple[int, ...]) -> None:
    """Al Daas and others, SPAA 2022, theorem 3: D - (mn + mk + nk) / P words, with D by three cases."""
    m, n, k = sorted(sizes, reverse=True)
    if ranks <= m / n:
        accessed = (m * n + m * k) / ranks + n * k
    elif ranks <= m * n / k**2:
        accessed = 2 * math.sqrt(m * n * k**2 / ranks) + m * n / ranks
    else:
        accessed = 3 * (m * n * k / ranks) ** (2 / 3)
    expected = 4 * (accessed - (m * n + m * k + n * k) / ranks)
    problem = MATMUL.problem
    for order in (sizes, sizes[::-1], (sizes[1], sizes[0], sizes[2])):
        assert problem.least_communication(order, np.dtype(np.float32), ranks) == pytest.approx(expected, abs=1e-6)


CHECKED = """
import contextlib
import json
import numpy as np
from py_backends import registry
from py_backends.contract import Target
from py_backends.harness.case import Case
from py_backends.workers.runner import Runner

found, runner = {}, Runner("mpi", Target("4x1"), 4)
for variant, text in registry.kernel_texts("matmul", "mpi").items():
    found[variant] = []
    for seed in (1, 2):
        case = Case(text.problem, (32, 32, 32), np.dtype(np.float32), seed)
        case.poison()
        runner.run(text, case)
        found[variant].append(case.check_output().reason)
        runner.unload(case)
        case.close()
runner.close()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def reasons(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str | None]]:
    """Why two products on ranks are wrong, by variant: of wrong sources (tests/faults/ranks.py), and of right ones."""
    clone = copy_clone(tmp_path_factory.mktemp("clone"), ["avx", "cpp", "mpi", "numpy", "openmp"])
    scratch.on_ranks(clone, ["wrong_in_nothing", *WRONG_ON_RANKS], "matmul")
    run = run_python("-c", CHECKED, cwd=clone)
    assert (run.returncode, run.stderr) == (0, "")
    found: dict[str, list[str | None]] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize("variant", ["lecture", "tuned", "wrong_in_nothing"])
def test_without_a_fault_it_is_right(reasons: dict[str, list[str | None]], variant: str) -> None:
    assert reasons[variant] == [None, None]


@pytest.mark.parametrize("fault", WRONG_ON_RANKS)
def test_what_is_wrong_among_ranks_is_noticed(reasons: dict[str, list[str | None]], fault: str) -> None:
    """With the last two faults the first result is right."""
    assert "elements" in (reasons[fault][1] or "")


def in_a_process(code: str) -> list[str]:
    """What a program of ours says, with every warning an error, since this process is to become no rank."""
    run = run_python("-W", "error", "-c", textwrap.dedent(code))
    assert run.stderr == ""
    return run.stdout.splitlines()


MOVED = """
    import threading
    import numpy as np
    from mpi4py import MPI
    from py_backends.ranks.blocks import extent, move, on_first
    from py_backends.ranks.communicator import CountingCommunicator

    ranks = CountingCommunicator(MPI.COMM_SELF)
    for dtype in (np.int8, np.uint16, np.float32, np.float64):
        for shape in ((7, 5), (0, 5), (1, 1), (31,)):
            whole = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
            target = np.zeros(shape, dtype)
            move(ranks, whole, on_first(shape, 1), target, on_first(shape, 1))
            assert (target == whole).all(), (dtype, shape)
            part = (tuple(slice(size // 3, size - size // 3) for size in shape),)
            target = np.zeros(extent(part[0]), dtype)
            move(ranks, whole, on_first(shape, 1), target, part)
            assert (target == whole[part[0]]).all(), (dtype, shape)
    assert ranks.tally.sent == 0, "nothing goes to others"
    print("moved")
"""


def test_blocks_move_what_they_have_in_common() -> None:
    assert in_a_process(MOVED) == ["moved"]


OPENED_OFTEN = """
    import numpy as np
    from mpi4py import MPI
    from py_backends.ranks.rank import Ranks

    ranks = Ranks(MPI.COMM_WORLD)
    kernel = {"kernel": "matmul", "variant": "tuned", "dtype": "float32"}
    for client in range(600):
        def do(what, memory=None, **arguments):
            return ranks.do({"do": what, "client": client, **arguments}, memory)
        do("open", ranks=1, threads=1)
        do("prepare", backend="mpi", **kernel)
        for at in range(3):
            place = [*kernel.values(), [2, 2, 2], at]
            do("upload", np.ones(4, np.float32), buffer=at, dtype="float32", place=place)
        do("launch", buffers=[0, 1, 2], sizes=[2, 2, 2], **kernel)
        do("close")
    print("opened")
"""


def test_ranks_give_back_the_communicators_of_a_device() -> None:
    """MPICH has 2,046 of them, and each device took five."""
    assert in_a_process(OPENED_OFTEN) == ["opened"]


LEAVES_AT_ONCE = """
    import socket
    import numpy as np
    import py_backends as pb
    from py_backends.functions import call as calls
    from py_backends.ranks import SOCKET

    a = np.ones(5, np.float32)
    kept = pb.vecadd(a, a, backend="mpi", target="2x1", to="device")
    (device,) = calls._devices.values()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(str(device._latest._folder / SOCKET))
    pb.vecadd(a, a, backend="mpi", target="2x1")
    print(kept.get())
"""


def test_a_client_that_leaves_before_it_says_anything_costs_the_others_nothing() -> None:
    """It ended all ranks."""
    assert in_a_process(LEAVES_AT_ONCE) == ["[2. 2. 2. 2. 2.]"]


OF_OTHERS = """
    import os
    import socket
    from mpi4py import MPI
    from py_backends.ranks.rank import Clients, Ranks

    name = f"\\0py-backends-of-a-test-{os.getpid()}"
    clients = Clients(Ranks(MPI.COMM_WORLD), name)
    for user in (os.getuid() + 1, os.getuid()):
        os.geteuid = lambda: user
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.connect(name)
            accepted = clients._accept()
            print("accepted" if accepted else f"refused {client.recv(1)}")
    accepted.close()
    clients._listener.close()
"""


def test_ranks_answer_no_other_user() -> None:
    """A socket without a file has no permissions."""
    assert in_a_process(OF_OTHERS) == ["refused b''", "accepted"]


ARRANGED_AGAIN = """
    import numpy as np
    from mpi4py import MPI
    from py_backends.ranks.communicator import CountingCommunicator
    from py_backends.ranks.session import Session

    ranks = CountingCommunicator(MPI.COMM_SELF)
    session = Session(ranks, 1)
    session.prepare("mpi", "matmul", "tuned", "float32")
    kernel = ["matmul", "tuned", "float32"]
    sizes = (2, 6, 3), (4, 3, 3)
    for buffer, at in enumerate([0, 1, 0, 1]):
        m, n, k = sizes[buffer // 2]
        session.upload(buffer, "float32", [*kernel, (m, n, k), at], np.ones((m * k, k * n)[at], np.float32))
    session.allocate(4, "float32", [*kernel, sizes[0], 2])
    held = set()
    for call in range(20):
        first = 2 * (call % 2)
        session.launch(*kernel, [first, first + 1, 4], sizes[call % 2])
        held.add(ranks.memory.nbytes)
    result = np.empty(12, np.float32)
    session.download(4, result)
    print(max(held), (result == 3).all())
"""


def test_a_result_that_changes_its_blocks_leaves_the_old_ones_to_the_next() -> None:
    """Two products with results of 12 elements, in turn into one buffer: blocks of it exist at most twice."""
    elements = (6 + 18) + (12 + 9) + 2 * 12
    assert in_a_process(ARRANGED_AGAIN) == [f"{4 * elements} True"]


TWO_DEVICES = """
    import os, threading
    from pathlib import Path
    import numpy as np
    import py_backends as pb
    from py_backends.functions import call as calls
    from py_backends.harness.interference import our_processes

    random = np.random.default_rng(1)
    wrong = []
    def call(target, seed):
        for at in range(20):
            a = np.full((17 + at, 13), seed + at, np.float32)
            b = np.ones((13, 11), np.float32)
            if not (pb.matmul(a, b, backend="mpi", target=target) == 13 * (seed + at)).all():
                wrong.append((target, seed, at))
    threads = [threading.Thread(target=call, args=(target, seed)) for target in ("2x1", "1x2") for seed in (100, 200)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(wrong)

    large = pb.matmul(np.ones((900, 900), np.float32), np.ones((900, 900), np.float32), backend="mpi", target="2x1")
    devices = {where: device for (_, where, _), device in calls._devices.items()}
    ours = set(our_processes())
    print(all(set(device.processes) <= ours for device in devices.values()), len(devices["2x1"].processes))
    maps = [Path(f"/proc/{rank}/maps") for rank in devices["2x1"].processes]
    mapped = ["memfd:py-backends (" in each.read_text() for each in maps]
    print(mapped)
"""


@pytest.mark.slow
def test_threads_and_devices_at_once_get_their_own_results() -> None:
    """And the ranks are processes of ours, of which only the first maps our memory."""
    assert in_a_process(TWO_DEVICES) == ["[]", "True 2", "[True, False]"]


FORKED = """
import multiprocessing, os, signal
import numpy as np
import py_backends as pb
from py_backends.functions import call as calls

a = np.arange(12, dtype=np.float64).reshape(3, 4)

def product(x, y):
    return pb.matmul(x, y, backend="mpi", target="2x1")

def right(_=None):
    return bool((product(a, a.T.copy()) == a @ a.T).all())

def ranks():
    return calls._devices["mpi", "2x1", len(os.sched_getaffinity(0))].processes

if __name__ == "__main__":
    print(right())
    ours = ranks()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if right() and not set(ranks()) & set(ours) else 1)
    print([right() for _ in range(20)] == [True] * 20)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(pool.map(right, range(4)))
    print(right(), ranks() == ours)
"""


@pytest.mark.slow
def test_processes_that_are_forked_have_ranks_of_their_own(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(FORKED)
    run = run_python(program)
    pools = ["[True, True, True, True]"] * 2
    assert (run.stdout.splitlines(), run.stderr) == (["True", "True", "0", *pools, "True True"], "")


def test_a_path_too_long_for_a_socket_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest that is taken has room for each socket there."""
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        longest = Path(short, "x" * (_LONGEST_PATH - len(short) - len("//py-backends-") - 12))
        monkeypatch.setattr(tempfile, "tempdir", str(longest))
        folder = new_folder()
        assert len(str(folder)) == _LONGEST_PATH
        folder.mkdir(parents=True)
        endings.listen(folder).close()
        assert len(SOCKET) <= len(ENDINGS)
        monkeypatch.setattr(tempfile, "tempdir", f"{longest}x")
        with pytest.raises(BackendUnavailable) as raised:
            new_folder()
    assert re.findall(r"\d+", raised.value.reason) == [str(_LONGEST_PATH + 1), str(_LONGEST_PATH)], "has, and may have"
    assert "TMPDIR" in (raised.value.fix or "")


KEPT = """
    import os, signal, time
    import numpy as np
    import py_backends as pb
    from py_backends.functions import call as calls

    a = np.ones((8, 8), np.float32)
    kept = pb.matmul(a, a, backend="mpi", target="2x1", to="device")
    (device,) = calls._devices.values()
    print((kept.get() == 8).all())
    os.kill(device.processes[1], signal.SIGKILL)
    for _ in range(2):
        try:
            kept.get()
        except RuntimeError as error:
            print(type(error).__name__)
    fresh = pb.matmul(a, a, backend="mpi", target="2x1", to="device")
    try:
        pb.matmul(kept, fresh, backend="mpi", target="2x1")
    except RuntimeError as error:
        print(error)
    print((pb.matmul(fresh, fresh, backend="mpi", target="2x1") == 512).all())
    many = [pb.matmul(a, a, backend="mpi", target="2x1", to="device") for _ in range(600)]
    del many
    print((fresh.get() == 8).all())
"""


@pytest.mark.slow
def test_an_array_is_lost_with_its_ranks_and_no_other_is_taken_for_it() -> None:
    lost = "the ranks on which an array lay have ended, and it with them"
    assert in_a_process(KEPT) == ["True", "RanksEnded", "RanksEnded", lost, "True", "True"]


IDLE = """
    import sys
    import numpy as np
    import py_backends as pb
    from py_backends.functions import call as calls
    a = np.ones((64, 64), np.float32)
    pb.matmul(a, a, backend="mpi", target="2x1")
    (device,) = calls._devices.values()
    print(*device.processes, flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_idle_ranks_use_hardly_any_of_a_core() -> None:
    """At most 2% of one, each; 5% allow for a machine that is busy with others."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(IDLE)],
        cwd=CLONE,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout
        ranks = [psutil.Process(int(each)) for each in process.stdout.readline().split()]
        assert len(ranks) == 2
        assert {rank.pid for rank in ranks} <= set(our_processes())
        psutil.wait_procs(ranks, 0.2)
        before = [sum(rank.cpu_times()[:2]) for rank in ranks]
        psutil.wait_procs(ranks, 2)
        used = [sum(rank.cpu_times()[:2]) - earlier for rank, earlier in zip(ranks, before, strict=True)]
        process.communicate()
    assert max(used) <= 2 * 0.05
