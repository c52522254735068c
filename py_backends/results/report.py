"""The results of a comparison, as objects and as strict JSON (docs/reference.md, Results)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypedDict, cast

import msgspec
import numpy as np

from py_backends.contract import Problem
from py_backends.errors import WrongRequest
from py_backends.reference import TOO_WIDE
from py_backends.results.grouping import grouped
from py_backends.results.spec import Spec
from py_backends.system.files import printable, read_text

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number of 64 bits. A file may hold larger ones, which no view could divide."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
SCHEMA_VERSION = 2
FAILURES = frozenset({"mismatch", "error", "crashed", "timeout", "impossible"})
"""The statuses that make a comparison exit with 1."""
RAN = frozenset({"ok", "emulated"}) | FAILURES
SURE = 0.25
"""A time is unreliable if its 95% interval extends beyond this part of it on either side."""


@dataclass(frozen=True)
class Work:
    """What a kernel does in one launch at the shape of its row. By it, views need no kernel.

    rule: by which its results are right: `bitwise` or `componentwise`.
    rate: by which its rows are compared: `gflops` or `gbytes_per_second`.
    flops: operations.
    bytes: the fewest that can be moved: each array once.
    written: those of the result among them.
    amount: what the time is about proportional to. By it, rows of different shapes are compared.
    """

    rule: str
    rate: Literal["gflops", "gbytes_per_second"]
    flops: Count
    bytes: Count
    written: Count
    amount: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]

    @classmethod
    def of(cls, problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any]) -> Work:
        """That of a problem at these sizes, for inputs of a dtype."""
        every = list(zip(problem.shapes(sizes), problem.array_dtypes(dtype), strict=True))
        written = sum(math.prod(shape) * of_array.itemsize for shape, of_array in every[-problem.outputs :])
        of_sizes = problem.flops(sizes), problem.bytes(sizes, dtype), written, problem.work(sizes)
        return cls(problem.rule, cast(Any, problem.rate), *map(int, of_sizes))


@dataclass(frozen=True)
class Check:
    """The comparison of a result with the reference. `error_over_bound` is at most 1 if it passed.

    relative_error: the distance from the float64 result of the unrounded inputs, over the norm of that result. Both are
        Euclidean norms. None if it was not measured, or is not finite.
    """

    passed: bool
    rule: str
    error_over_bound: float | None
    relative_error: float | None = None


@dataclass(frozen=True)
class Duration:
    """Seconds of one phase over all samples. `low` and `high` bound the median at 95%; None with too few samples."""

    median: float
    low: float | None
    high: float | None
    minimum: float
    samples: Whole


@dataclass(frozen=True)
class Seconds:
    """The phases of a row, in seconds. A phase that was not measured is None.

    kernel: from launch to end: by the device's events or by ranks if it has them, else by the host's clock.
    clock: by the host's clock around launch and wait, if `kernel` is by events or by ranks.
    first_launch: the first launch in its process, compilation included, at a small shape.
    """

    prepare: float | None = None
    upload: float | None = None
    download: float | None = None
    kernel: Duration | None = None
    end_to_end: Duration | None = None
    first_launch: float | None = None
    clock: Duration | None = None
    release: float | None = None


@dataclass(frozen=True)
class Rate:
    """The rates of the kernel alone, from its median time."""

    gflops: float
    gbytes_per_second: float


@dataclass(frozen=True)
class Estimate:
    """A figure that was not measured itself, and the 95% interval in which it is expected."""

    value: float
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> Estimate:
        """A figure that is given."""
        return cls(value, value, value)

    def times(self, factor: float) -> Estimate:
        """So many times as much, with the same relative uncertainty."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    def plus(self, other: Estimate) -> Estimate:
        """The sum of two that depend on the same, so that both are too low or too high together."""
        return Estimate(self.value + other.value, self.low + other.low, self.high + other.high)

    def less(self, other: Estimate) -> Estimate:
        """What is left of it without another one, each measured by itself; at least nothing."""
        value = max(0.0, self.value - other.value)
        below = math.hypot(self.value - self.low, other.high - other.value)
        above = math.hypot(self.high - self.value, other.value - other.low)
        return Estimate(value, max(0.0, value - below), value + above)

    def towards(self, other: Estimate, part: float) -> Estimate:
        """What lies between this and another one, at this part of the way."""
        pairs = ((self.value, other.value), (self.low, other.low), (self.high, other.high))
        return Estimate(*(one + part * (two - one) for one, two in pairs))


@dataclass(frozen=True)
class Prediction:
    """How long a launch of a kernel would take on so many ranks, by `predict`.

    scaling: `strong`, the same work for any number of ranks, or `weak`, work that grows with them.
    threads: of each rank.
    parts: of its seconds: `launch`, `computing`, the messages' `latency`, `overhead` and `bandwidth`, and `memory`,
        where ranks copy and add for an exchange.
    efficiency: the time of one rank for this work, over the time of all ranks together.
    with_help: the efficiency with half the latency, twice the bandwidth and so on, by what is changed.
    communicating: the part of its time, from 0 to 1, that exchanges take.
    bytes_a_rank: of the arrays of the rank that has most. The first one also has the caller's.
    half_from: the least number of ranks whose efficiency is below one half; None if none up to the most that was tried.
    note: what it rests on, if that is not all measured.
    """

    kernel: str
    backend: str
    variant: str
    dtype: str
    shape: dict[str, Whole | float]
    scaling: str
    network: str
    ranks: Whole
    threads: Whole
    seconds: Estimate
    parts: dict[str, float]
    efficiency: Estimate
    with_help: dict[str, float]
    communicating: float
    bytes_a_rank: Whole
    half_from: Whole | None = None
    note: str | None = None


@dataclass(frozen=True)
class Communication:
    """The communication of a row's ranks in one launch of its kernel.

    seconds: the median over the samples, for the rank that communicates longest. The kernel's time includes it.
    bytes_sent: by each rank.
    least_bytes: a lower bound for any algorithm: some rank has to send or receive as much. None if none is known.
    seconds_by_rank: for each rank the median over its samples, waiting for others included; empty if not known.
    kernel_by_rank: for each rank the median of its kernel, communication included.
    """

    seconds: float
    bytes_sent: list[Whole]
    least_bytes: float | None
    seconds_by_rank: list[float] = field(default_factory=list)
    kernel_by_rank: list[float] = field(default_factory=list)

    @property
    def over_bound(self) -> float | None:
        """The bytes of the rank that sends most, divided by the lower bound; None if that is 0 or not known."""
        most = max(self.bytes_sent, default=0)
        return most / self.least_bytes if most and self.least_bytes else None


@dataclass(frozen=True)
class Speedup:
    """The speed relative to the baseline, from ratios taken inside rounds. Above 1 is faster.

    low, high: the 95% interval of the median of the ratios; None with too few rounds.
    same_shape: False if the row ran at another shape than the baseline. Then rates are compared.
    verdict: `same`, `faster`, `slower` or `unclear`: see `verdicts`. None where none was looked for.
    rounds: the number of ratios.
    converged: whether the rounds sufficed for a verdict.
    """

    baseline: str
    speedup: float
    low: float | None
    high: float | None
    same_shape: bool
    verdict: str | None = None
    rounds: Whole = 0
    converged: bool = False


@dataclass(frozen=True)
class Control:
    """The baseline compared with two more copies of itself, for one kernel, dtype and shape.

    first, second: the copies, judged like every row.
    """

    kernel: str
    dtype: str
    shape: dict[str, Whole | float]
    first: Speedup
    second: Speedup


@dataclass(frozen=True)
class Rounds:
    """The numbers of rounds: taken, kept, and disturbed by each signal.

    Disturbed rounds are dropped, unless too few others are left. Then all are kept.
    """

    taken: Whole
    kept: Whole
    disturbed: dict[str, Whole]


MULTIPLY_ADDS, COPIES = "multiply_adds", "copies"
STREAMED, STORED, READS = "streamed_additions", "stored_additions", "reads"
STREAMED_COPIES, STORED_COPIES = "streamed_copies", "stored_copies"
"""The kinds of ceilings: see `Ceiling`."""


@dataclass(frozen=True)
class Ceiling:
    """A ceiling of a device, measured in this run (see `workers.ceilings`).

    device: `cpu`, or the name of a GPU.
    kind: for the CPU `multiply_adds`, `streamed_additions` (non-temporal stores), `stored_additions` or `reads`. For a
        GPU `multiply_adds`, or `copies` within its memory.
    threads: of the CPU; None for a GPU.
    working_set_bytes: the bytes of all vectors together; None for multiply-adds, and for a GPU.
    rate: in `unit`, which is `gflops` or `gbytes_per_second`. `low` and `high` bound the median at 95%.
    by_round: the rate in every round, like `kernel_seconds` of a row; empty if it was not sampled in rounds.
    """

    device: str
    kind: str
    dtype: str
    instruction_set: str | None
    threads: Whole | None
    working_set_bytes: Whole | None
    unit: str
    rate: float
    low: float | None
    high: float | None
    by_round: list[float | None] = field(default_factory=list)


def by_round(samples: Mapping[int, float]) -> list[float | None]:
    """The samples in the order of their rounds, as results hold them. A round without a sample is None."""
    return [samples.get(number) for number in range(max(samples, default=-1) + 1)]


class ShownInNotebooks:
    """How notebooks, IPython and `print` show a row and a report: by what a room above has set here, else by `repr`."""

    as_html: ClassVar[Callable[[Any], str] | None] = None
    as_text: ClassVar[Callable[[Any], str]] = repr

    def _repr_html_(self) -> str | None:
        show = type(self).as_html
        return None if show is None else show(self)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(type(self).as_text(self))

    def __str__(self) -> str:
        return type(self).as_text(self)


@dataclass(frozen=True)
class Row(ShownInNotebooks):
    """One (kernel, backend, target, variant, dtype, shape) of a comparison.

    percent_of_ceiling: its rate in per cent of what the roofline allows at its arithmetic intensity. None if it only
        seems to exceed that.
    requested: the requested shape, if it ran at a smaller one.
    work: at its shape; None if it has no result.
    finished: False if an interruption ended it early. `--resume` runs it again.
    threads: the number requested for a backend on the CPU.
    statement: the Python statement that was timed in place of the kernel, if any.
    kernel_seconds: the sample of its kernel in each round; None for a round that was dropped or did not sample it.
        Rows of one run are paired by round. The rounds of a resumption are numbered after the ones before.
    end_to_end_seconds: the same for whole calls, from upload to release.
    communication: of the ranks that compute the row, if any.
    stands_for: names of targets that are this one on its number of threads, and others on other numbers.
    estimated_seconds: of one run at the requested shape, from smaller shapes. The budget is shared by it. None if the
        row was not run at all.
    kept: whether `seconds.prepare` is that of loading what an earlier run has compiled.
    """

    kernel: str
    backend: str
    target: str
    variant: str
    dtype: str
    shape: dict[str, Whole | float]
    status: str
    reason: str | None = None
    fix: str | None = None
    note: str | None = None
    device: str | None = None
    check: Check | None = None
    seconds: Seconds | None = None
    rate: Rate | None = None
    versus: Speedup | None = None
    percent_of_ceiling: float | None = None
    requested: dict[str, Whole | float] | None = None
    work: Work | None = None
    finished: bool = True
    threads: Whole | None = None
    statement: str | None = None
    kernel_seconds: list[float | None] = field(default_factory=list)
    end_to_end_seconds: list[float | None] = field(default_factory=list)
    communication: Communication | None = None
    stands_for: list[str] = field(default_factory=list)
    estimated_seconds: float | None = None
    kept: bool = False

    @property
    def timed(self) -> Duration | None:
        """The time of its kernel or statement; None if the row is not `ok`, or has no time."""
        return self.seconds.kernel if self.status == "ok" and self.seconds else None

    @property
    def time_is_sure(self) -> bool:
        """Whether the interval of its time is narrow: see `SURE`. True without an interval."""
        time = self.timed
        if time is None or time.low is None or time.high is None:
            return True
        return time.high <= time.median * (1 + SURE) and time.low >= time.median * (1 - SURE)

    @property
    def communicating(self) -> float | None:
        """The part of its kernel's time, from 0 to 1, in which ranks communicate; None if it has no ranks."""
        kernel = self.seconds.kernel if self.seconds else None
        if self.communication is None or kernel is None:
            return None
        return min(1.0, self.communication.seconds / kernel.median) if kernel.median else 0.0

    @property
    def asked(self) -> dict[str, int | float]:
        """The requested shape; the row may have run at a smaller one."""
        return self.requested or self.shape

    @property
    def spec(self) -> Spec:
        """The identity of the row."""
        sizes = tuple(self.asked.values())
        who = self.backend, self.target, self.variant
        return Spec(self.kernel, *who, self.dtype, sizes, self.threads, self.statement, tuple(self.stands_for))


FUNCTIONS, BOUND_WIDTH = "functions", "bound_width"
"""In the settings of a race: the names of what it compared, and the width of the widest bound (`Reference.width`).

The width is None where none came by itself: all is whole numbers, or there is a tolerance.
"""


@dataclass(frozen=True)
class FailingCase:
    """A case of the conformance suite that does not hold, or a row that is wrong.

    kind, case: their names in the suite; `prepare` is a source that does not compile. `compare` is the timed shape, or
        the one that was asked for, whose case is its seed.
    sizes: of the kernel; empty where the fault is the same at any.
    reason: the first wrong element with its value and the right one, or how the worker ended.
    """

    kind: str
    case: str
    dtype: str
    sizes: list[Whole | float]
    reason: str


@dataclass(frozen=True)
class Judgement:
    """What `judge` says of one file.

    file: its path, as it was given.
    right: whether every case holds, and the row at its shape and at the one that was asked for. False, without a
        failing case, after an interruption, which leaves that row unchecked.
    dtypes: the number formats in which it was tried.
    cases, kinds: how many of the suite ran, and of how many kinds.
    failed: how many of them do not hold. A kind is left after three.
    failing: the smallest case that fails.
    remarks: what is no fault and yet to be known.
    """

    file: str
    kernel: str
    backend: str
    target: str
    variant: str
    right: bool
    dtypes: list[str]
    cases: Whole
    kinds: Whole
    failed: Whole = 0
    failing: FailingCase | None = None
    remarks: list[str] = field(default_factory=list)


@dataclass
class Report(ShownInNotebooks):
    """A whole comparison. The `settings` of a race have its `FUNCTIONS` and its `BOUND_WIDTH`."""

    created: str
    package_version: str
    machine: dict[str, Any]
    settings: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    control: list[Control] = field(default_factory=list)
    ceilings: list[Ceiling] = field(default_factory=list)
    without_ceilings: str | None = None
    """Why some or all ceilings could not be measured; None if all were."""
    rounds: Rounds | None = None
    predictions: list[Prediction] = field(default_factory=list)
    judgement: Judgement | None = None
    """Of the file that `judge` was given."""
    seconds_taken: float | None = None
    interrupted: bool = False

    def exit_code(self) -> int:
        """0 if every row that ran agrees, 1 if one failed, 130 after an interruption. 1 without a row or prediction.

        2 if no row of a race failed, and its bound judges nothing, or a function did not run.
        """
        if self.interrupted:
            return 130
        statuses = [row.status for row in self.rows]
        failed = any(status in FAILURES for status in statuses)
        if self.judgement is not None:
            return int(not self.judgement.right)
        if failed or not (self.predictions or any(status in RAN for status in statuses)):
            return 1
        return 2 if self.too_wide or self.unreached else 0

    @property
    def too_wide(self) -> float | None:
        """The width of a race's bound, if that is wider than the values: what lies within may be right or wrong."""
        width = self.settings.get(BOUND_WIDTH)
        return width if isinstance(width, float) and width > TOO_WIDE else None

    @property
    def unreached(self) -> int:
        """How many functions of a race did not run: nobody knows whether these are right."""
        done = {*RAN, *FAILURES}
        return sum(row.status not in done for row in self.rows) if FUNCTIONS in self.settings else 0

    @property
    def mostly_disturbed(self) -> bool:
        """Whether other processes used the CPUs in most rounds. All rounds are kept if too few others are left."""
        rounds = self.rounds
        if rounds is None or not rounds.disturbed:
            return False
        return rounds.kept == rounds.taken or rounds.kept < rounds.taken / 2

    def is_unsure_of(self, row: Row) -> bool:
        """Whether a row's rate may be far off, mostly too low: it was disturbed, or its interval is wide."""
        return self.mostly_disturbed or not row.time_is_sure

    def to_json(self) -> str:
        """The results as strict JSON: null for missing values, never NaN or Infinity."""
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self)}, indent=1, allow_nan=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Report:
        """Read the results in a file that `to_json` wrote. Fields of later versions are ignored.

        Raises WrongRequest, with one clear line, if the file cannot be read or holds no results.
        """
        try:
            text = _without_surrogates(read_text(path))
            version = msgspec.json.decode(text, type=_Versioned).schema_version
            if version != SCHEMA_VERSION:
                known = f"{printable(version)}, but only {SCHEMA_VERSION} is supported"
                raise WrongRequest(f"{printable(path)} has the schema version {known}")
            report = msgspec.json.decode(text, type=cls)
            msgspec.convert(report.machine, _Machine)  # raises if a view could not read it
            if any(row.timed and row.work is None for row in report.rows):
                raise WrongRequest(f"{printable(path)} has a timed row without its work: run its command again")
        except OSError as error:
            raise WrongRequest(f"{printable(path)} cannot be read: {error.strerror or error}") from error
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            known = "holds no results of a comparison: write one with compare --json"
            raise WrongRequest(f"{printable(path)} {known}") from error
        return report

    def by_kernel(self) -> Iterator[tuple[str, list[Row]]]:
        """Each kernel with its rows, in the order in which the kernels first appear."""
        yield from grouped((row.kernel, row) for row in self.rows).items()


class _Machine(TypedDict, total=False):
    """What views read of a machine. A file may lack any of it, and hold more."""

    cpu: str | None
    isa: list[str] | None
    logical_cpus: Whole | None
    memory_bytes: float | None
    cache_bytes: dict[str, Whole] | None
    python: str | None
    packages: dict[str, Any] | None
    versions: dict[str, Any] | None
    state: dict[str, Any] | None


@dataclass(frozen=True)
class _Versioned:
    schema_version: Any


def _without_surrogates(text: str) -> str:
    """The same JSON with a question mark for each unpaired surrogate: JSON may hold one, but UTF-8 may not."""
    if "\\ud" in text.lower():
        with suppress(ValueError):  # it is no JSON, which its reader tells
            return json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace").decode()
    return text
