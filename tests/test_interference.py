"""Rounds that something else disturbed are told from others: by made-up readings, and by a process that burns a CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from py_backends.harness.interference import MOST_OTHERS, MOST_STEAL, Interference, Reading, _ticks, read_system

CPUS = 2
IDLE_FOR = 5.0
"""Seconds of idling before the first round."""


def seen(
    seconds: float,
    steal: float = 0.0,
    others: float = 0.0,
    before: Mapping[int, float] | None = None,
    after: Mapping[int, float] | None = None,
) -> list[str]:
    """The signals of a round, in whose seconds our processes used what is in `after` and not yet in `before`."""
    before, after = before or {}, after or {}
    ours = sum(after.values()) - sum(before.get(pid, 0.0) for pid in after)
    idle = IDLE_FOR + CPUS * seconds - steal - others - ours
    readings = iter(
        [Reading(0.0, 1.0, 0.0, before), Reading(0.0, IDLE_FOR, 0.0, before), Reading(seconds, idle, steal, after)]
    )
    watch = Interference(lambda: list(before), lambda _: next(readings), CPUS)
    assert watch.signals == ("steal", "others")
    watch.begin()
    return watch.end()


def test_an_undisturbed_round_shows_nothing() -> None:
    assert seen(1.0) == []
    assert seen(1.0, before={7: 3.0, 8: 0.5}, after={7: 4.0, 8: 1.4}) == [], "our own work is none"


@pytest.mark.parametrize("seconds", [0.1, 0.5, 3.0])
def test_what_rounding_to_ticks_adds_is_no_signal(seconds: float) -> None:
    assert seen(seconds, others=0.028) == []
    assert seen(seconds, steal=0.02) == []
    assert seen(seconds, others=-0.2) == [], "nor is what it takes away"


@pytest.mark.parametrize("seconds", [0.5, 3.0])
def test_each_signal_has_its_threshold(seconds: float) -> None:
    rounding = 0.03
    assert seen(seconds, steal=0.99 * MOST_STEAL * seconds * CPUS) == []
    assert seen(seconds, steal=MOST_STEAL * seconds * CPUS + rounding) == ["steal"]
    assert seen(seconds, others=0.99 * MOST_OTHERS * seconds) == []
    assert seen(seconds, others=MOST_OTHERS * seconds + rounding) == ["others"]
    assert seen(seconds, steal=seconds, others=seconds) == ["steal", "others"]


def test_a_process_that_was_started_in_the_round_is_ours() -> None:
    assert seen(1.0, before={7: 3.0}, after={7: 3.5, 9: 1.0}) == []


def test_a_process_that_ended_in_the_round_took_its_figure_along() -> None:
    assert seen(1.0, before={7: 3.0, 8: 2.0}, after={7: 3.5}, others=1.0) == [], "those may have been its own"


def test_what_the_system_does_not_tell_is_never_seen() -> None:
    watch = Interference(list, lambda _: Reading(time.monotonic()), CPUS)
    watch.begin()
    assert (watch.signals, watch.end()) == ((), [])


def test_cpus_that_are_not_ours_do_not_count() -> None:
    stat = (
        "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 5 6 7 8 0\ncpu1 1 1 1 9 1 1 1 1 0\ncpu3 0 0 0 1 0 0 0 2 0 0\nintr 5\n"
    )
    assert _ticks(stat, {0, 3}) == (46, 10)


@contextmanager
def burning() -> Iterator[int]:
    """A process that keeps one CPU busy; its number."""
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        process.kill()


def used_in(pid: int, seconds: float) -> float:
    """CPU seconds of a process while we sleep."""
    before = read_system([pid]).ours[pid]
    time.sleep(seconds)
    return read_system([pid]).ours[pid] - before


def test_a_process_that_burns_a_cpu_is_seen_unless_it_is_ours() -> None:
    known: list[int] = []
    watch = Interference(lambda: known)
    if "others" not in watch.signals:
        pytest.skip("this system does not tell how long its CPUs were idle")
    with burning() as pid:
        watch.begin()
        used = used_in(pid, 1.0)
        assert "others" in watch.end(), f"it used {used:.2f} s of 1 s"
        known.append(pid)
        before = read_system([os.getpid(), pid])
        used = used_in(pid, 0.5)
        after = read_system([os.getpid(), pid])
    # Whether others disturb this moment too is not ours to say; but what is known is taken off.
    assert after.ours[pid] - before.ours[pid] >= used > 0.02
    assert pid not in read_system([pid]).ours


def test_a_reading_is_of_the_processes_asked_for() -> None:
    pids: Sequence[int] = [os.getpid(), os.getppid()]
    assert list(read_system(pids).ours) == pids
