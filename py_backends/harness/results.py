"""The results of a comparison: its rows, as objects and as strict JSON (docs/reference.md, Results)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any, NoReturn

from py_backends.errors import WrongRequest
from py_backends.harness.files import printable, read_text
from py_backends.harness.spec import Spec

SCHEMA_VERSION = 1
FAILURES = frozenset({"mismatch", "error", "crashed", "timeout", "impossible"})
"""The statuses that make a comparison exit with 1."""
RAN = frozenset({"ok", "emulated"}) | FAILURES


@dataclass(frozen=True)
class Check:
    """How a result compares with the reference; `error_over_bound` is at most 1 where it passed.

    relative_error: how far it lies from the result in float64 of the inputs as they were before they were rounded to
        their format, both by their Euclidean norms; None where it was not measured, or is not finite.
    """

    passed: bool
    rule: str
    error_over_bound: float | None
    relative_error: float | None = None


@dataclass(frozen=True)
class Duration:
    """Seconds of one phase over all samples; `low` and `high` bound the median at 95%, None with too few."""

    median: float
    low: float | None
    high: float | None
    minimum: float
    samples: int


@dataclass(frozen=True)
class Seconds:
    """The phases of a row, in seconds; None where a phase was not measured.

    kernel: from launch until it has ended: by the device's events where it has them, else by the clock.
    clock: by the clock around launch and wait, where `kernel` is by events.
    first_launch: the very first one in its process, compilation and all, at a small shape.
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
    """Rates of the kernel alone, from its median time."""

    gflops: float
    gbytes_per_second: float


@dataclass(frozen=True)
class Communication:
    """The communication of a row's ranks in one launch of its kernel.

    seconds: the median of the samples, of the rank that communicated the longest; a part of the kernel's.
    bytes_sent: by each rank.
    least_bytes: what some rank has to send or receive whatever the algorithm; None where nobody knows.
    seconds_by_rank: the median of the samples of each rank, waiting for the others included; empty where not known.
    kernel_by_rank: the same of its kernel, of which that is a part.
    """

    seconds: float
    bytes_sent: list[int]
    least_bytes: float | None
    seconds_by_rank: list[float] = field(default_factory=list)
    kernel_by_rank: list[float] = field(default_factory=list)

    @property
    def over_bound(self) -> float | None:
        """The most bytes that a rank sends over the lower bound; None if that is 0 or not known."""
        most = max(self.bytes_sent, default=0)
        return most / self.least_bytes if most and self.least_bytes else None


@dataclass(frozen=True)
class Speedup:
    """How many times as fast as the baseline, from ratios taken inside rounds; above 1 is faster.

    low, high: a 95% interval of the median of the ratios; None with too few rounds.
    same_shape: False where the row ran at another shape than the baseline, so that rates are compared.
    verdict: `same`, `faster`, `slower` or `unclear`, by the band of the run's control, and `unclear` without one; None
        in results of an earlier version.
    rounds: how many ratios there are.
    converged: whether the interval became narrow enough for a verdict.
    """

    baseline: str
    speedup: float
    low: float | None
    high: float | None
    same_shape: bool
    verdict: str | None = None
    rounds: int = 0
    converged: bool = False


@dataclass(frozen=True)
class Control:
    """The baseline against two more copies of itself, at one kernel, dtype and shape.

    band: how far apart two equal things may seem in this run: from 1 / (1 + band) to 1 + band; None with too few
        rounds.
    first: the copy that sets the band.
    second: the copy that is judged by it, as every row is.
    """

    kernel: str
    dtype: str
    shape: dict[str, int]
    band: float | None
    first: Speedup
    second: Speedup


@dataclass(frozen=True)
class Rounds:
    """How many rounds were taken, how many of them count, and how many were disturbed by which signal.

    All count, and none was dropped, where too few were undisturbed.
    """

    taken: int
    kept: int
    disturbed: dict[str, int]


@dataclass(frozen=True)
class Ceiling:
    """A ceiling of a device, measured in the rounds of this run (see `harness.ceilings`).

    device: `cpu`, or what the GPU calls itself.
    kind: `multiply_adds`, `streamed_additions` (non-temporal stores), `stored_additions` or `reads`; of a GPU
        `multiply_adds` and `copies` within its memory.
    threads: None where it is not a CPU's.
    working_set_bytes: of additions, what all their vectors take together; None of multiply-adds.
    rate: in `unit`, `gflops` or `gbytes_per_second`; `low` and `high` bound the median at 95%.
    by_round: the rate in every round, by its number, as the samples of rows are told; empty where none was taken in
        rounds.
    """

    device: str
    kind: str
    dtype: str
    instruction_set: str | None
    threads: int | None
    working_set_bytes: int | None
    unit: str
    rate: float
    low: float | None
    high: float | None
    by_round: list[float | None] = field(default_factory=list)


def by_round(samples: Mapping[int, float]) -> list[float | None]:
    """Samples in the order of their rounds, None for a round without one: as results have them."""
    return [samples.get(number) for number in range(max(samples, default=-1) + 1)]


@dataclass
class Row:
    """One (kernel, backend, target, variant, dtype, shape) of a comparison.

    percent_of_ceiling: its rate in per cent of what the roofline allows at its arithmetic intensity.
    requested: the shape that was asked for, where it ran at a smaller one.
    finished: False where an interruption kept it from its end; `--resume` runs it.
    threads: that it was asked to run on, where it runs on the CPU.
    statement: the statement of Python that was timed in place of the kernel, if any.
    kernel_seconds: every sample of its kernel, by the number of its round; None for a round that was dropped. Rows
        of one run are paired by it.
    end_to_end_seconds: the same of whole calls, from upload to release.
    communication: of a row that ranks compute.
    stands_for: targets that are this one on its number of threads, where others are so on other numbers.
    """

    kernel: str
    backend: str
    target: str
    variant: str
    dtype: str
    shape: dict[str, int]
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
    requested: dict[str, int] | None = None
    finished: bool = True
    threads: int | None = None
    statement: str | None = None
    kernel_seconds: list[float | None] = field(default_factory=list)
    end_to_end_seconds: list[float | None] = field(default_factory=list)
    communication: Communication | None = None
    stands_for: list[str] = field(default_factory=list)

    def _repr_html_(self) -> str:
        return str(_notebook().row_as_html(self))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(_notebook().row_as_text(self))

    @property
    def communicating(self) -> float | None:
        """The part of its kernel, from 0 to 1, in which ranks communicate; None if it has no ranks."""
        kernel = self.seconds.kernel if self.seconds else None
        if self.communication is None or kernel is None:
            return None
        return min(1.0, self.communication.seconds / kernel.median) if kernel.median else 0.0

    @property
    def asked(self) -> dict[str, int]:
        """The requested shape; the row may have run at a smaller one."""
        return self.requested or self.shape

    @property
    def spec(self) -> Spec:
        """Which row it is."""
        sizes = tuple(self.asked.values())
        who = self.backend, self.target, self.variant
        return Spec(self.kernel, *who, self.dtype, sizes, self.threads, self.statement, tuple(self.stands_for))


@dataclass
class Report:
    """A whole comparison."""

    created: str
    package_version: str
    machine: dict[str, Any]
    settings: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    control: list[Control] = field(default_factory=list)
    ceilings: list[Ceiling] = field(default_factory=list)
    without_ceilings: str | None = None
    """Why some or all could not be measured."""
    rounds: Rounds | None = None
    seconds_taken: float | None = None
    interrupted: bool = False

    def _repr_html_(self) -> str:
        return str(_notebook().report_as_html(self))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(_notebook().report_as_text(self))

    def exit_code(self) -> int:
        """0 every row that ran agrees; 1 one failed or none ran; 130 interrupted."""
        if self.interrupted:
            return 130
        statuses = [row.status for row in self.rows]
        failed = any(status in FAILURES for status in statuses)
        return int(failed or not any(status in RAN for status in statuses))

    def to_json(self) -> str:
        """The results as strict JSON: null stands for what there is not, never NaN or Infinity."""
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self)}, indent=1, allow_nan=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Report:
        """The results in a file that `to_json` wrote, fields of later versions left out.

        Raises WrongRequest, with one clear line, where the file cannot be read or is no such thing.
        """
        # Imported here: who only writes results needs no such library.
        from cattrs import ClassValidationError, Converter

        try:
            content = _parsed(read_text(path))
            version = content["schema_version"]
            if version != SCHEMA_VERSION:
                known = f"{printable(version)}, and {SCHEMA_VERSION} is known here"
                raise WrongRequest(f"{printable(path)} has the schema version {known}")
            report = Converter().structure(content, cls)
            _check_machine(report.machine)
        except OSError as error:
            raise WrongRequest(f"{printable(path)} cannot be read: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError, RecursionError, ClassValidationError) as error:
            if isinstance(error, WrongRequest):
                raise
            known = "holds no results of a comparison: write one with compare --json"
            raise WrongRequest(f"{printable(path)} {known}") from error
        return report

    def by_kernel(self) -> Iterator[tuple[str, list[Row]]]:
        """Each kernel with its rows, in the order in which kernels first appear."""
        for kernel in dict.fromkeys(row.kernel for row in self.rows):
            yield kernel, [row for row in self.rows if row.kernel == kernel]


def _notebook() -> Any:
    """What shows results: notebooks and IPython ask the results themselves, by methods of these names.

    By its name, and not before it is asked for: the report knows the harness, which knows no report.
    """
    return import_module("py_backends.report.notebook")


_MACHINE: dict[str, type | UnionType] = {
    "cpu": str,
    "isa": list,
    "logical_cpus": int,
    "memory_bytes": int | float,
    "python": str,
    "packages": dict,
    "versions": dict,
    "state": dict,
}
"""The types of a machine's entries, for those that a file has."""


def _check_machine(machine: dict[str, Any]) -> None:
    for name, kind in _MACHINE.items():
        if machine.get(name) is not None and not isinstance(machine[name], kind):
            raise ValueError(f"{name} of a machine is no {kind}")


def _parsed(text: str) -> Any:
    """Strict JSON as objects. An unpaired surrogate, which JSON may hold and UTF-8 may not, becomes a question mark."""
    content = json.loads(text, parse_constant=_refuse)
    if "\\ud" in text.lower():
        return json.loads(json.dumps(content, ensure_ascii=False).encode("utf-8", "replace"))
    return content


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
