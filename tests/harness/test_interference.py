"""Rounds that something else disturbed are told from others: by made-up readings, and by a process that burns a CPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psutil
import pytest

from py_backends.harness.interference import (
    MOST_OTHERS,
    MOST_STEAL,
    Interference,
    Reading,
    _ticks,
    our_processes,
    read_system,
)

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
    ours = max(0.0, sum(after.values()) - sum(before.values()))
    idle = IDLE_FOR + CPUS * seconds - steal - others - ours
    readings = iter(
        [Reading(0.0, 1.0, 0.0, before), Reading(0.0, IDLE_FOR, 0.0, before), Reading(seconds, idle, steal, after)]
    )
    watch = Interference(lambda: next(readings), CPUS)
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


def test_a_process_that_ended_in_the_round_left_its_figure_to_who_waited_for_it() -> None:
    assert seen(1.0, before={7: 3.0, 8: 2.0}, after={7: 5.5}) == []
    assert seen(1.0, before={7: 3.0, 8: 2.0}, after={7: 5.5}, others=1.0) == ["others"]
    assert seen(1.0, before={7: 3.0, 8: 2.0}, after={7: 3.5}, others=1.0) == [], "nobody has waited: it may be its own"


def test_what_the_system_does_not_tell_is_never_seen() -> None:
    watch = Interference(lambda: Reading(time.monotonic()), CPUS)
    watch.begin()
    assert watch.end() == []


def test_cpus_that_are_not_ours_do_not_count() -> None:
    stat = (
        "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 5 6 7 8 0\ncpu1 1 1 1 9 1 1 1 1 0\ncpu3 0 0 0 1 0 0 0 2 0 0\nintr 5\n"
    )
    assert _ticks(stat, {0, 3}) == (46, 10)
    with pytest.raises(ValueError, match="no ticks of CPU 2"):
        _ticks(stat, {0, 2, 3})


BURN = "print(flush=True)\nwhile True: pass"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}])"
"""A process whose child burns: a worker whose library runs a compiler."""
OF_NOBODY = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {BURN!r}], stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
print(child.pid, flush=True)
"""
"""A process that starts one that burns, and ends: the other is nobody's child any more."""


@contextmanager
def burning(code: str) -> Iterator[int]:
    """A process of ours that keeps one CPU busy, itself or by its child; its number."""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def burning_of_others() -> Iterator[int]:
    """The same of a process that is not ours."""
    started = subprocess.run([sys.executable, "-c", OF_NOBODY], stdout=subprocess.PIPE, check=True, text=True)
    pid = int(started.stdout)
    yield pid
    os.kill(pid, signal.SIGKILL)


def test_a_process_of_others_that_burns_a_cpu_is_seen() -> None:
    watch = Interference()
    if read_system().idle is None:
        pytest.skip("this system does not tell how long its CPUs were idle")
    with burning_of_others() as pid:
        assert pid not in our_processes()
        watch.begin()
        before = psutil.Process(pid).cpu_times().user
        time.sleep(1.0)
        used = psutil.Process(pid).cpu_times().user - before
        assert "others" in watch.end(), f"it used {used:.2f} s of 1 s"


@pytest.mark.parametrize("code", [BURN, CHILD])
def test_a_process_that_burns_is_ours_and_so_is_its_child(code: str) -> None:
    """Whether others disturb this moment too is not ours to say; but what is ours is taken off."""
    with burning(code):
        before = read_system()
        time.sleep(0.5)
        after = read_system()
    assert sum(after.ours.values()) - sum(before.ours.values()) > 0.02


def test_the_time_of_a_child_that_has_ended_is_still_ours() -> None:
    """A compiler that begins and ends in a round is no work of others."""
    before = read_system()
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    after = read_system()
    assert after.ours.keys() == before.ours.keys()
    assert sum(after.ours.values()) - sum(before.ours.values()) > 0.05
