"""What came out of a run: a table, a line for each survivor, and the page docs/mutants.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from scipy.stats import binomtest

from .judge import CAUGHT, STILLBORN, SURVIVED
from .mutant import Mutant
from .results import Results

EQUIVALENT, ELSEWHERE, NOT_RUN = "equivalent", "elsewhere", "not run"
_COLUMNS = ("programming model", "mutants", "equivalent", "not run here", "left out", "run", "stillborn", "caught",
            "survived", "caught of those that live", "of all at least")  # fmt: skip
_HEAD = """# Mutants

This page shows how much the conformance suite notices. Every kernel's source is changed in one place at a time: one
operator, bound, index, initial value, barrier, wait, directive or tail. Then the suite runs on it.
`python -m tests.mutants` does that, and wrote this page:

    {command}

- **mutants**: all possible changes. A change of a header counts for each backend that includes it.
- **equivalent**: changes that change no result, listed [below](#equivalent) with the reason. They are not run.
- **not run here**: what this machine cannot run, listed [below](#not-run-here).
- **left out**: not in the sample, which is drawn at random with a seed for each programming model.
- **stillborn**: they do not compile, and are not counted. The others that were run are those that **live**.
- **caught**: a test failed, crashed, or did not end.
- **of all at least**: with a confidence of 95%, by Clopper and Pearson, from an unbiased sample.

C++ is compiled without optimisation: so an operator does what the source says. A mutant of `avx` that survives on one
instruction set is tried on the others. A source with a form for GPUs runs in that form on the CPU, if the change is in
it.
"""


@dataclass(frozen=True)
class Outcome:
    """A mutant and what became of it; `by` says what told, or why it was not run."""

    mutant: Mutant
    what: str
    by: str


def outcomes(
    mutants: Iterable[Mutant], results: Results, equivalent: dict[str, str], elsewhere: dict[str, str]
) -> list[Outcome]:
    """Of every mutant. One that was run is what the suite said of it, unless it is equivalent and survived."""
    found = []
    for mutant in mutants:
        name = mutant.identifier
        verdict = results.verdicts.get(name)
        if name in equivalent and (verdict is None or verdict.outcome != CAUGHT):
            found.append(Outcome(mutant, EQUIVALENT, equivalent[name]))
        elif name in elsewhere:
            found.append(Outcome(mutant, ELSEWHERE, elsewhere[name]))
        elif verdict is None:
            found.append(Outcome(mutant, NOT_RUN, ""))
        else:
            found.append(Outcome(mutant, verdict.outcome, verdict.by))
    return found


def ran(counts: Counter[str]) -> int:
    """How many mutants were run."""
    return counts[STILLBORN] + counts[CAUGHT] + counts[SURVIVED]


def percent(counts: Counter[str]) -> float | None:
    """Of the mutants that live, how many were caught; None where none was run."""
    lives = counts[CAUGHT] + counts[SURVIVED]
    return 100 * counts[CAUGHT] / lives if lives else None


def percent_bounds(counts: Counter[str]) -> tuple[float, float] | None:
    """Of all mutants that live, how many are caught at least and at most; None where none was run.

    Where nothing was left out it is known. Else what was run is a sample, and each bound holds with a confidence of
    95% (C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), 404-413).
    """
    share = percent(counts)
    if share is None or not counts[NOT_RUN]:
        return None if share is None else (share, share)
    both = binomtest(counts[CAUGHT], counts[CAUGHT] + counts[SURVIVED]).proportion_ci(0.90, "exact")
    return 100 * float(both.low), 100 * float(both.high)


def counted(found: Sequence[Outcome]) -> dict[str, Counter[str]]:
    """How many came out how, for each programming model."""
    counts: dict[str, Counter[str]] = {}
    for outcome in sorted(found, key=lambda each: each.mutant.backend):
        counts.setdefault(outcome.mutant.backend, Counter())[outcome.what] += 1
    return counts


def rows(found: Sequence[Outcome]) -> Iterator[tuple[str, ...]]:
    """The table, a line for each programming model, and one for all."""
    of_models = counted(found)
    for name, counts in [*of_models.items(), ("all", sum(of_models.values(), Counter()))]:
        run, bounds = ran(counts), percent_bounds(counts)
        yield (
            name,
            *map(str, (counts.total(), counts[EQUIVALENT], counts[ELSEWHERE], counts[NOT_RUN], run)),
            *map(str, (counts[STILLBORN], counts[CAUGHT], counts[SURVIVED])),
            *(f"{share:.1f}%" if bounds else "" for share in (percent(counts), bounds and bounds[0])),
        )


def text(found: Sequence[Outcome]) -> str:
    """The table for a terminal, and the survivors."""
    lines = [("model", *_COLUMNS[1:-2], "caught", "at least"), *rows(found)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(_COLUMNS))]
    table = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return "\n".join([*table, "", *map(survivor, _of(found, SURVIVED))])


def survivor(outcome: Outcome) -> str:
    """One line that says which mutant it is and what was changed."""
    mutant = outcome.mutant
    return (
        f"{outcome.what}: {mutant.identifier}  {mutant.text.file}:{mutant.line}  {mutant.change.kind}: "
        f"{mutant.description}   in: {mutant.source}"
    )


def markdown(found: Sequence[Outcome], command: str) -> str:
    """The page."""
    parts = [_HEAD.format(command=command), "## Results\n", _table(_COLUMNS, rows(found))]
    parts += ["## By what was changed\n", _table(("change", "run", "stillborn", "caught", "survived"), _by_kind(found))]
    parts += ["## Survivors\n", *_survivors(found)]
    parts += ["## Not run here\n", *_counted(_of(found, ELSEWHERE))]
    parts += ["## Equivalent\n", *_equivalent(_of(found, EQUIVALENT))]
    return "\n".join(parts) + "\n"


def _of(found: Sequence[Outcome], what: str) -> list[Outcome]:
    return [outcome for outcome in found if outcome.what == what]


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    marks = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, marks, *lines]) + "\n"


def _by_kind(found: Sequence[Outcome]) -> Iterator[tuple[str, ...]]:
    for kind in sorted({outcome.mutant.change.kind for outcome in found}):
        counts = Counter(outcome.what for outcome in found if outcome.mutant.change.kind == kind)
        yield kind, *map(str, (ran(counts), counts[STILLBORN], counts[CAUGHT], counts[SURVIVED]))


def _survivors(found: Sequence[Outcome]) -> Iterator[str]:
    survivors = _of(found, SURVIVED)
    for outcome in survivors:
        mutant = outcome.mutant
        yield (
            f"- `{mutant.identifier}` {mutant.text.file}:{mutant.line}, {mutant.change.kind}: `{mutant.description}`\n"
            f"  in `{mutant.source}`"
        )
    yield "" if survivors else "None.\n"


def _counted(found: Sequence[Outcome]) -> Iterator[str]:
    counts = Counter((outcome.mutant.backend, outcome.by) for outcome in found)
    for (backend, reason), count in sorted(counts.items()):
        yield f"- {backend}: {count}: {reason}"
    yield "" if counts else "Nothing.\n"


def _equivalent(found: Sequence[Outcome]) -> Iterator[str]:
    by_reason: dict[str, list[Mutant]] = {}
    for outcome in found:
        by_reason.setdefault(outcome.by, []).append(outcome.mutant)
    for reason, mutants in by_reason.items():
        yield f"- {reason}:"
        places = Counter((each.text.file, each.line, each.description) for each in mutants)
        yield from (f"  - {file}:{line} `{change}`" for file, line, change in places)
