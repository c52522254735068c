"""Prints which backend to choose, in five lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from py_backends import registry
from py_backends.commands.choose.analysis import Choice, Standing, choices, seconds, unanswered
from py_backends.display import console, layout, units
from py_backends.display.layout import Remark
from py_backends.harness.sizing import LONGER_BUDGET, in_words
from py_backends.results.grouping import grouped
from py_backends.results.report import FAILURES, Report, Row, Speedup
from py_backends.results.timeline import PHASES
from py_backends.results.verdicts import SAME

_MOST_NAMES = 3
"""So many indistinguishable backends are named. Further ones are only counted."""
_WORTH_SAYING = 0.01
"""A phase below this part of a call is left out."""
_FAR_BEYOND = 10.0
"""From so many times as long on, the interval is left out."""
_MANY_CALLS, _SHORTEST_WAIT = 10.0, 0.01
"""What the first call costs is said from so many calls on, and from so many seconds on."""
_HALF = 0.5
"""What makes up this part of a difference explains it."""
_THE_SAME, _NO_DIFFERENCE = "the same within 10%", "no difference is certain"
"""What is said of two calls of which neither is certainly the faster."""
_NOT_BY_ENOUGH = "not by enough to be certain"
"""The same, where the interval is on one side of 1: all verdicts are to hold together, and beyond 1%."""
_TOO_LONG = "too long for the budget"


def print_report(report: Report, out: Console) -> None:
    """Five lines for each kernel and dtype, and who was not timed; or why there is no answer. Then the verdict."""
    console.print_parts([Text(part, style="bold") for part in layout.heading(report)], out)
    found = choices(report)
    for choice in found:
        title = f"{choice.asked.title}  by whole calls from Python, arrays in the host's memory"
        console.print_remarks(title, list(answer(choice)), out)
        if left_out := _left_out(choice.missing):
            out.print(Padding(Text(left_out, style="dim"), (0, 0, 0, 2)))
    for asked, rows in unanswered(report, found).items():
        console.print_remarks(f"{asked.title}  no call was timed", _reasons(rows), out)
    console.print_end(report, out)


def answer(choice: Choice) -> Iterator[Remark]:
    """The five lines."""
    yield Remark("use", _use(choice))
    yield Remark("why", _why(choice))
    yield Remark("second", _second(choice))
    yield Remark("one call", "; ".join([_one_call(choice), *_first_call(choice.calls.best)]))
    yield Remark("other sizes", _other_sizes(choice))


def name(row: Row) -> str:
    """A row's name: "avx avx512 tuned"."""
    return " ".join(row.spec.implementation)


def _use(choice: Choice) -> str:
    """The fastest row, those that cannot be told from it, and how to call it."""
    calls = choice.calls
    best, *rivals = calls.candidates
    call = f"{units.duration(seconds(best))} a call, {best.statement}"
    if not rivals:
        return f"{name(best)}: {call}"
    named = [f"{name(row)}, which takes {_between(calls.ahead[id(row)])}" for row in rivals[: _MOST_NAMES - 1]]
    if more := len(rivals) - len(named):
        named.append(f"{more} more")
    same = all(calls.ahead[id(row)].verdict == SAME for row in rivals)
    return f"{', or '.join([name(best), *named])}: {_THE_SAME if same else _NO_DIFFERENCE}; {call}"


def _between(ahead: Speedup) -> str:
    """How many times as long a row takes that cannot be told from the fastest: "0.99x to 1.05x as long".

    The median is left out: it may seem to say the opposite of the order by time.
    """
    if ahead.low is None or ahead.high is None:
        return f"{ahead.speedup:.2f}x as long"
    return f"{ahead.low:.2f}x to {ahead.high:.2f}x as long"


def _ratio(standing: Standing, row: Row, word: str) -> str:
    """How many times as long a row takes as the fastest, with its interval: "1.02x as long (0.99 to 1.05)"."""
    ahead = standing.ahead[id(row)]
    if ahead.speedup >= _FAR_BEYOND:
        return f"{units.figure(ahead.speedup)}x as {word}"
    interval = "" if ahead.low is None or ahead.high is None else f" ({ahead.low:.2f} to {ahead.high:.2f})"
    return f"{ahead.speedup:.2f}x as {word}{interval}"


def _why(choice: Choice) -> str:
    """Which part of the second's call takes longer, and how near the kernel is to the machine's ceiling."""
    best, *others = choice.calls.rows
    kernel = choice.kernel(best)
    said = []
    if others and choice.calls.is_behind(others[0]):
        said.append(_difference(choice, best, others[0]))
    elif others:
        said.append(f"nothing certain sets it apart from {name(others[0])}")
    if kernel and kernel.percent_of_ceiling is not None:
        said.append(f"its kernel reaches {kernel.percent_of_ceiling:.0f}% of what this machine can do")
    if not others:
        said.insert(0, "it is the only one that was timed")
    return "; ".join(filter(None, said)) or "its kernel was not timed, so nothing explains it"


def _difference(choice: Choice, best: Row, second: Row) -> str:
    """Why the fastest is ahead of the second: by its kernel, or by what a call costs beyond it."""
    kernels = choice.kernel(best), choice.kernel(second)
    beyond = choice.beyond_kernel(best), choice.beyond_kernel(second)
    if kernels[0] is None or kernels[1] is None or beyond[0] is None or beyond[1] is None:
        return ""
    of_kernel, of_call = seconds(kernels[1]) - seconds(kernels[0]), beyond[1] - beyond[0]
    if of_kernel + of_call <= 0:
        return "its call as a whole is shorter, which the kernels alone do not explain"
    against = f"against {{}} of {name(second)}"
    if of_kernel >= _HALF * (of_kernel + of_call):
        figures = [units.duration(seconds(kernel)) for kernel in kernels if kernel]
        return f"its kernel takes {figures[0]} {against.format(figures[1])}"
    figures = [units.duration(each) if each else "nothing" for each in beyond]
    return f"a call costs {figures[0]} beyond the kernel {against.format(figures[1])}"


def _second(choice: Choice) -> str:
    """The next best, and the baseline if it is neither of the two."""
    if len(choice.calls.rows) < 2:
        return "none was timed"
    _, second, *others = choice.calls.rows
    baseline = [row for row in others if registry.is_baseline(row.backend)]
    return "; ".join(_compared(choice.calls, row) for row in (second, *baseline))


def _compared(calls: Standing, row: Row) -> str:
    """What a call of a row takes, beside one of the fastest."""
    took = f"{name(row)}: {units.duration(seconds(row))} a call, takes {_ratio(calls, row, 'long')}"
    if calls.is_behind(row):
        return took
    ahead = calls.ahead[id(row)]
    if ahead.verdict == SAME:
        return f"{took}, {_THE_SAME}"
    return f"{took}, {_NOT_BY_ENOUGH if ahead.low is not None and ahead.low > 1 else _NO_DIFFERENCE}"


def _one_call(choice: Choice) -> str:
    """The kernel's part of a call, the rest, and who would be first by the kernel alone."""
    best = choice.calls.best
    kernel, beyond = choice.kernel(best), choice.beyond_kernel(best)
    if kernel is None or beyond is None or choice.kernels is None:
        return "its kernel alone was not timed"
    whole = seconds(best)
    if beyond > 0:
        said = f"{units.duration(beyond)} of {units.duration(whole)} beyond the kernel ({100 * beyond / whole:.0f}%)"
        said = f"{said}{_parts(choice, best, beyond)}"
    else:
        said = f"nothing to be seen beyond the kernel, which alone takes {units.duration(seconds(kernel))}"
    first = choice.kernels
    if best.spec.implementation in first.names:
        return f"{said}; the kernel alone gives no other answer"
    return f"{said}; by the kernel alone it is {name(first.best)}, {_ratio(first, kernel, 'fast')}"


def _first_call(row: Row) -> Iterator[str]:
    """What the first call of a process costs beyond the others: compilation and the first launch."""
    once = row.seconds.first_launch if row.seconds else None
    if once is not None and once > max(_SHORTEST_WAIT, _MANY_CALLS * seconds(row)):
        yield f"the first one in a process takes {units.duration(once)} more"


def _parts(choice: Choice, row: Row, beyond: float) -> str:
    """The phases of a call other than the kernel, if they explain what a call costs beyond it.

    They are those of single calls. Repeated calls may cost less than their sum. Then nothing is said.
    """
    phases = choice.phases(row)
    total = sum(phases.values())
    if not 0 < total <= beyond:
        return ""
    phases["the call itself"] = beyond - total
    ordered = [phase for phase in (*PHASES, "the call itself") if phases.get(phase, 0.0) > _WORTH_SAYING * beyond]
    return ": " + ", ".join(f"{phase} {units.duration(phases[phase])}" for phase in ordered)


def _other_sizes(choice: Choice) -> str:
    """Where the answer changes, in both directions, as far as was measured."""
    said = [*_in_direction(choice, upwards=False), *_in_direction(choice, upwards=True)] or [_why_no_others(choice)]
    if choice.too_long:
        said.append(f"{', '.join(map(units.shape, choice.too_long))} takes too long for the budget")
    return "; ".join(said)


def _why_no_others(choice: Choice) -> str:
    if choice.budget_for_others is None:
        return "there is none to try"
    if choice.budget < choice.budget_for_others:
        return f"not measured: this takes a --budget of {choice.budget_for_others:.0f} or more"
    return "not measured: the budget went to the size that was asked for"


def _in_direction(choice: Choice, *, upwards: bool) -> Iterator[str]:
    furthest = choice.furthest(upwards=upwards)
    if furthest is None:
        return
    found = choice.change(upwards=upwards)
    if found is None:
        yield f"no other answer is certain {'up' if upwards else 'down'} to {units.shape(furthest)}"
        return
    there, last = found
    ratio = there.times_as_fast(choice.calls.names)
    how = "" if ratio is None else f", {units.figure(ratio)}x as fast"
    which = " or ".join(map(name, there.candidates[:_MOST_NAMES]))
    between = f"between {units.shape(min(last, there.sizes))} and {units.shape(max(last, there.sizes))}"
    yield f"the answer changes {between}: at {units.shape(there.sizes)} it is {which}{how}"


def _left_out(rows: Sequence[Row]) -> str:
    """Who has no time, and why, in a few words."""
    named = grouped((_reason(row), f"{row.backend} {row.target}{_took(row)}") for row in rows)
    return "; ".join(f"{why}: {', '.join(names)}" for why, names in named.items())


def _took(row: Row) -> str:
    """The estimate of a row that takes too long."""
    estimate = row.estimated_seconds if _reason(row) == _TOO_LONG else None
    return "" if estimate is None else f" ({in_words(estimate)})"


def _reasons(rows: Sequence[Row]) -> list[Remark]:
    """Why each row has no time, with the fix. A kernel and its call have the same reason, which is said once."""
    said = [Remark(f"{row.backend} {row.target}", row.reason or row.status, row.fix) for row in rows]
    return list(dict.fromkeys(said))


def _reason(row: Row) -> str:
    if row.status in FAILURES:
        return row.status
    if row.status == "ok":
        return "no round left for it"
    if row.fix == LONGER_BUDGET:
        return _TOO_LONG
    return "not there (py-backends doctor says why)" if row.status == "unavailable" else row.reason or row.status
