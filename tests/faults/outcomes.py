"""What becomes of faults, and of changes of sources, which are judged as mutants are."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from mutants import places, texts
from mutants.judge import SURVIVED, JudgeFailed
from mutants.mutant import Mutant, with_changes
from mutants.results import Results
from mutants.session import Judges

from .table import CLONE, Change

CAUGHT, MISSED, NOT_TRIED = "caught", "not caught", "not tried"


class Outcome(NamedTuple):
    """What became of a fault. `by`: who caught it, or why it was not."""

    fault: str
    status: str
    by: str


def judged(changes: Sequence[Change], by: str) -> Iterator[Outcome]:
    """What becomes of changes of sources, each in a copy of the clone for its model."""
    with tempfile.TemporaryDirectory(prefix="py-backends-faults-") as folder, ExitStack() as closing:
        machines = {name: texts.Machine(name) for name in {change.text.backend for change in changes}}
        judges = Judges(Path(folder), machines, Results(), by, closing)
        for change in sorted(changes, key=lambda change: change.text.backend):  # a copy at a time is built
            mutant = as_mutant(change)
            elsewhere = machines[mutant.backend].place(mutant.text, mutant.context).elsewhere
            if elsewhere:
                yield Outcome(change.name, NOT_TRIED, elsewhere)
                continue
            try:
                verdict = judges.judge(mutant)
            except JudgeFailed as failed:
                yield Outcome(change.name, MISSED, str(failed))
            else:
                yield Outcome(change.name, MISSED if verdict.outcome == SURVIVED else CAUGHT, verdict.by)


def as_mutant(change: Change) -> Mutant:
    """A change of a source: all from its first place to its last is replaced."""
    source, text = change.text, (CLONE / change.where).read_text(encoding="utf-8")
    begin, end = text.index(change.old), text.rindex(change.old) + len(change.old)
    new = text[begin:end].replace(change.old, change.new)
    start = len(text[:begin].encode())
    place = places.Change(start, start + len(text[begin:end].encode()), new, "fault")
    of_source = texts.Text(source.backend, change.where, ((source.kernel, source.variant),))
    return with_changes(of_source, [place])[0]
