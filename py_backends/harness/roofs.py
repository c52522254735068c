"""Measures how near each row comes to this machine's ceilings, by the roofline model.

A run of f operations on b bytes takes at least max(f / peak, b / bandwidth). The model is that of S. Williams, A.
Waterman and D. Patterson (Communications of the ACM 52(4), 2009). They draw rates over the arithmetic intensity f / b.
The peak is that of multiply-adds in the row's dtype. The bandwidth is measured for the row's own working set: all its
bytes. Caches may hold them, and a row that is timed hot finds them there.

Rounds sample the ceilings beside the rows, so a machine that slows down slows both:

    with roofs.ceilings(timed, threads, seconds) as ceilings:
        run_rounds(lambda: [*timed, *ceilings], ...)
        report.ceilings = roofs.place_under(timed, ceilings)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Self

from py_backends import registry
from py_backends.errors import BackendUnavailable
from py_backends.harness.running_row import RunningRow
from py_backends.harness.timed_ceilings import CeilingWorker, TimedCeiling
from py_backends.results.report import COPIES, MULTIPLY_ADDS, STORED, STREAMED, Ceiling
from py_backends.results.roofline import ABOVE_ALL, UNCERTAIN, bandwidth_kinds
from py_backends.results.statistics import median
from py_backends.system import caches, machine
from py_backends.workers.ceilings import instruction_sets, measured_dtypes
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Prepared

MARGIN = 0.15
"""A figure that exceeds the roofline by more than this part counts as a bug in the timing.

Right kernels were measured on 2 cores, at 10^3 to 2^26 elements and at 64 to 2048 rows, in and out of the caches. The
best medians reached 1.00 of the roofline, and single rounds on an idle machine 1.05. A wrong timing is off by far more.
"""
_FAR_ABOVE, _AS_LIKELY = 4, 20
"""With few samples, a figure counts as a bug if each is so many times above the best sample of the ceilings.

The interval of a median needs six samples, since fewer lie on one side of it by chance too often. Here all samples of
the row lie on one side of all those of its ceilings, of which there are more once it seems to exceed them. If it were
as fast as they are, of so many orders at least only one would be such. The factor is for a machine on which others
compute all the time: two take two thirds of a CPU.
"""
_LOOKS = 40
"""So many further samples at most of ceilings that a row seems to exceed.

Beside six processes that computed all the time, on two cores, nine of ten samples were 30 times too low. One of ten was
as high as on an idle machine: its parts of a millisecond had the CPUs for themselves.
"""
SEEMS_TO_TAKE = "its kernel seems to take"
"""The beginning of what is said of a row whose time is above its ceiling."""
LARGEST_WORKING_SET = 2**30
"""Bytes of the largest working set of a ceiling. It exceeds most caches. A row with more bytes has this ceiling: its
own cannot be higher, since a larger working set is never faster."""
_OUT_OF_CACHE = 2**28
_PART_OF_FREE_MEMORY = 8
"""The largest working set is the free memory divided by this."""
_CACHES_FORGET = 2
"""A working set that is this many times as large as a cache finds none of its data there again."""
_RECORD = 6
"""Samples of each ceiling for the record. Fewer would have no interval."""
LEAST_FOR_RECORD = 0.25
"""With fewer seconds the record is not begun: making vectors that exceed the caches takes about as long."""


@dataclass(frozen=True)
class Roof:
    """The ceilings of one row, and the least seconds that they allow its kernel.

    more: the CPUs that the row may use over those of the ceilings.
    cached: whether a cache of its device may hold all its bytes. The bandwidth of such a cache is not known, so only
        the peak is a ceiling.
    """

    flops: int
    bytes: int
    peak: TimedCeiling
    bandwidths: tuple[TimedCeiling, ...]
    more: float = 1.0
    cached: bool = False

    @property
    def ceilings(self) -> tuple[TimedCeiling, ...]:
        """The peak and the bandwidths."""
        return self.peak, *self.bandwidths

    def seconds(self, number: int) -> float | None:
        """The least seconds by the ceilings of one round; None if one was not sampled."""
        if any(number not in each.samples for each in self.ceilings):
            return None
        peak, bandwidth = self.peak.samples[number], max(each.samples[number] for each in self.bandwidths)
        if self.cached and self.bytes / bandwidth > self.flops / peak:
            return None
        return self._seconds(peak, bandwidth)

    def fewest_seconds(self) -> float:
        """The least seconds by the best samples of the ceilings."""
        return self._seconds(_best(self.peak), max(_best(each) for each in self.bandwidths))

    def look_again(self, seconds: float) -> None:
        """Sample the ceilings until they allow a kernel that takes so many seconds, or often enough."""
        for _ in range(_LOOKS):
            if self.fewest_seconds() <= (1 + MARGIN) * seconds:
                break
            for each in self.ceilings:
                each.record.append(each.sample())

    def are_far_below(self, kernel: Sequence[float]) -> bool:
        """Whether a kernel's seconds are so few, in each sample, that few samples tell."""
        own, others = len(kernel), min(len(each.samples) + len(each.record) for each in self.ceilings)
        return math.comb(own + others, own) >= _AS_LIKELY and self.fewest_seconds() >= _FAR_ABOVE * max(kernel)

    def _seconds(self, flops_per_second: float, bytes_per_second: float) -> float:
        return max(self.flops / flops_per_second, self.bytes / bytes_per_second) / self.more


def _best(ceiling: TimedCeiling) -> float:
    return max([*ceiling.samples.values(), *ceiling.record])


class Ceilings:
    """The ceilings that a set of rows needs. Rounds sample them together with the rows. Leaving it ends their worker.

    reason, fix: why there are none, and what would change that; None if nothing is missing.
    """

    def __init__(self, threads: int) -> None:
        self.reason: str | None = None
        self.fix: str | None = None
        self._cpus = machine.cpus()
        self._threads = min(threads, self._cpus)
        self._most = min(LARGEST_WORKING_SET, machine.free_memory() // _PART_OF_FREE_MEMORY)
        self._least = self._threads * caches.first_level_cache() // 2
        self._worker = CeilingWorker()
        self._all: dict[tuple[str, str, str, str | None, int | None], TimedCeiling] = {}
        self._roofs: dict[RunningRow, Roof] = {}

    def __iter__(self) -> Iterator[TimedCeiling]:
        """The ceilings that rounds sample."""
        return iter({id(each): each for roof in self._roofs.values() for each in roof.ceilings}.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker."""
        self._worker.close()

    @property
    def why_none(self) -> str | None:
        """Why some or all ceilings could not be measured, and what would change that; None if all were."""
        missing: list[Ceilings | WorkerFailed] = [self] if self.reason else []
        missing += [each.failed for each in self._all.values() if each.failed]
        return "; ".join(filter(None, (missing[0].reason, missing[0].fix))) if missing else None

    def roof(self, row: RunningRow) -> Roof | None:
        """The ceilings of a row; None if it has none."""
        return self._roofs.get(row)

    def add_if_there(self, row: RunningRow) -> None:
        """Add the ceilings of a row, or the reason why there are none."""
        try:
            self.add(row)
        except BackendUnavailable as missing:
            self.reason, self.fix = missing.reason, missing.fix
        except WorkerFailed:  # a row says itself that its worker died
            pass

    def add(self, row: RunningRow) -> None:
        """Add the ceilings of a row, unless it computes nothing, or its device has none."""
        text, work, dtype = row.text, row.work, row.dtype.name
        assert text is not None  # rows without a source are not timed
        prepared = row.runner.prepare(text, row.case)
        if 0 in row.case.sizes[: len(registry.problem(row.spec.kernel).dimensions)]:
            return
        if not prepared.on_cpu:
            self._add_on_device(row, prepared)
            return
        best = _best_instruction_set()
        if dtype not in measured_dtypes():
            raise BackendUnavailable(f"no ceiling is measured for this CPU in {dtype}")
        working_set = self._measured_at(work.bytes)
        self._roofs[row] = Roof(
            flops=work.flops,
            bytes=work.bytes,
            peak=self._ceiling(MULTIPLY_ADDS, dtype, instruction_sets(dtype)[0], None),
            bandwidths=tuple(self._ceiling(kind, dtype, best, working_set) for kind in bandwidth_kinds(work)),
            more=1.0 if prepared.obeys_threads else self._cpus / self._threads,
        )

    def _add_on_device(self, row: RunningRow, prepared: Prepared) -> None:
        """Add the ceilings of a row on a GPU, if its device has them."""
        device, dtype = row.target.device or row.spec.target, row.dtype.name
        if row.runner.ceiling(dtype) is None:
            return

        def measure(ceiling: TimedCeiling) -> float | None:
            return row.runner.ceiling(None if ceiling.kind == COPIES else ceiling.dtype)

        peak, copies = (
            self._all.setdefault(
                (device, kind, dtype, None, None), TimedCeiling(kind, dtype, None, None, None, measure, device)
            )
            for kind in (MULTIPLY_ADDS, COPIES)
        )
        self._roofs[row] = Roof(
            flops=row.work.flops,
            bytes=row.work.bytes,
            peak=peak,
            bandwidths=(copies,),
            cached=row.work.bytes <= _CACHES_FORGET * prepared.cache_bytes,
        )

    def take_record(self, seconds: float) -> None:
        """Warm up the ceilings of the rounds, and sample further ones for readers of the results.

        The further ones are every instruction set, and memory in and out of the caches, in each dtype of the rows. Each
        ceiling gets at least one sample. After `seconds`, no other sample is begun. With less than `LEAST_FOR_RECORD`
        there are no further ceilings.
        """
        end = monotonic() + seconds
        in_rounds = list(self)
        for_readers = in_rounds if seconds >= LEAST_FOR_RECORD else []
        for dtype in dict.fromkeys(each.dtype for each in for_readers if each.device == "cpu"):
            best = instruction_sets()[0]
            for name in instruction_sets(dtype)[1:]:
                self._ceiling(MULTIPLY_ADDS, dtype, name, None)
            for working_set in self._least, self._measured_at(max(_OUT_OF_CACHE, self._worker.largest)):
                for kind in STREAMED, STORED:
                    self._ceiling(kind, dtype, best, working_set)
        wanted = list(self._all.values())
        for _ in range(_RECORD):
            for each in wanted:
                if each.record and monotonic() > end:
                    return
                try:
                    each.record.append(each.sample())
                except WorkerFailed as failed:
                    each.failed = failed
            wanted = [each for each in wanted if each not in in_rounds and each.failed is None]

    def summary(self) -> list[Ceiling]:
        """All ceilings that were sampled, for the results."""
        return [each.summary() for each in self._all.values() if each.samples or each.record]

    def _measured_at(self, working_set: int) -> int:
        """The bytes at which the bandwidth of a working set is measured.

        Within the first-level cache, the bandwidth does not depend on the size. With few bytes, the overhead of the
        loop would dominate.
        """
        return max(self._least, min(working_set, self._most))

    def _ceiling(self, kind: str, dtype: str, instruction_set: str, working_set: int | None) -> TimedCeiling:
        """The ceiling of this kind, a new one if there is none yet."""
        self._worker.largest = max(self._worker.largest, working_set or 0)
        made = TimedCeiling(kind, dtype, instruction_set, self._threads, working_set, self._worker.sample)
        return self._all.setdefault(("cpu", kind, dtype, instruction_set, working_set), made)


def _best_instruction_set() -> str:
    """The measured instruction set with the widest vectors. Raises BackendUnavailable if the CPU has wider ones."""
    best = instruction_sets()[0]
    if best == "sse" and "avx" in machine.describe()["isa"]:
        raise BackendUnavailable("this CPU has AVX without AVX2, and ceilings are measured in SSE, AVX2 or AVX-512")
    return best


def ceilings(timed: Sequence[RunningRow], threads: int, seconds: float = math.inf) -> Ceilings:
    """The ceilings of rows that will be timed with so many threads. Their first samples are taken here.

    seconds: for the ceilings that only readers of the results need: see `Ceilings.take_record`.

    Without the compiled module that measures them there are none, and `reason` says why.
    """
    made = Ceilings(threads)
    try:
        for row in timed:
            made.add_if_there(row)
        made.take_record(seconds)
    except BaseException:  # Ctrl-C, for instance: its worker must not outlive it
        made.close()
        raise
    return made


def place_under(timed: Sequence[RunningRow], ceilings: Ceilings) -> list[Ceiling]:
    """Fill in `percent_of_ceiling` of rows that are right and timed, and mark impossible ones.

    Call it after the rounds and the second check. Returns all ceilings, for the results.
    """
    for row in timed:
        roof = ceilings.roof(row)
        if roof and row.status == "ok":
            _place(row, roof)
    return ceilings.summary()


def _place(row: RunningRow, roof: Roof) -> None:
    """Compare a row with its roof, round by round. If it only seems to exceed its roof, it gets no per cent."""
    kernel = {number: sample.kernel for number, sample in row.samples.items()}
    seconds_of_kernel = list(kernel.values())
    fewest = {number: roof.seconds(number) for number in kernel}
    ratios = [seconds / kernel[number] for number, seconds in fewest.items() if seconds is not None]
    if not ratios:
        return
    ratio = median(ratios)
    usual = median(seconds_of_kernel).value
    if ratio.value > 1 + MARGIN:
        with suppress(WorkerFailed):  # then the samples of the rounds tell
            roof.look_again(usual)
    possible = roof.fewest_seconds()
    # On a busy machine, a ceiling may have been disturbed in all of a few rounds, or in most of many. It must not
    # condemn a row. So the ratio needs an interval, and the best sample of the ceiling counts too.
    certain = ratio.low is not None and min(ratio.low, possible / usual) > 1 + MARGIN
    certain = certain or roof.are_far_below(seconds_of_kernel)
    if ratio.value > 1 + MARGIN and not certain:
        row.notes.append(ABOVE_ALL if possible / usual > 1 + MARGIN else UNCERTAIN)
        return
    row.percent_of_ceiling = 100 * ratio.value
    if certain:
        row.status = "impossible"
        row.reason = (
            f"{SEEMS_TO_TAKE} {usual:.3g} s, but this machine needs at least {possible:.3g} s "
            f"for {roof.flops:,} operations on {roof.bytes:,} bytes"
        )
