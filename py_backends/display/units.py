"""Figures as people read them: three significant digits, and a unit that fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
RATES = {"gflops": "GFLOP/s", "gbytes_per_second": "GB/s"}
"""The unit of each rate of the results."""


def duration(seconds: float) -> str:
    """0.0066 is "6.60 ms"."""
    size, unit = time_unit(seconds)
    return f"{figure(seconds / size)} {unit}"


def time_unit(seconds: float) -> tuple[float, str]:
    """The unit for a time, in seconds and by its name: that for 0.0066 is (1e-3, "ms")."""
    for size, unit in _SECONDS:
        if seconds >= 0.9995 * size:  # a time that rounds to 1.00 of a unit gets that unit
            return size, unit
    return _SECONDS[-1]


def size(count: int) -> str:
    """Bytes, in the units of rates, by 1000: 268435456 is "268 MB"."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= 0.9995 * factor:
            return f"{figure(count / factor)} {unit}"
    return f"{count} bytes"


def cache_size(count: int) -> str:
    """Bytes of a cache, in the units in which processors have them, by 1024: 1310720 is "1.25 MiB"."""
    factor, unit = (2**20, "MiB") if count >= 2**20 else (2**10, "KiB")
    return f"{count / factor:.4g} {unit}"


def figure(value: float) -> str:
    """Three significant digits without an exponent, thousands set apart: 0.0123, 4.56, 78.9, 1,235."""
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.0995 else f"{value:.2g}"


def spread(median: float, low: float | None, high: float | None) -> str:
    """Half the width of an interval, in per cent of its median. Empty without an interval."""
    if low is None or high is None or not median > 0:
        return ""
    percent = 50 * (high - low) / median
    return f"±{percent:.0f}%" if percent >= 9.95 else f"±{percent:.1f}%"


def with_spread(words: str, median: float, low: float | None, high: float | None) -> str:
    """Words of a figure and its spread, if it has an interval: "3.30x ±1.2%"."""
    return f"{words} {spread(median, low, high)}".rstrip()


def ratio(speedup: float, verdict: str | None, low: float | None = None, high: float | None = None) -> str:
    """A speed-up and its verdict in words: "1.21x faster", "3.30x slower", "same".

    An unclear one shows its interval, "1.06x [0.98, 1.15]", or that it has none: "unclear, 1.06x".
    """
    if verdict == "same" or not speedup > 0:
        return verdict or ""
    if verdict in (None, "unclear"):
        interval = None if low is None or high is None else f"{figure(speedup)}x [{figure(low)}, {figure(high)}]"
        return interval or f"unclear, {figure(speedup)}x"
    return f"{figure(max(speedup, 1 / speedup))}x {verdict}"


def shape(sizes: Iterable[float]) -> str:
    """Sizes, and numbers behind them, as people write them: "1000 x 777 x 513"."""
    return " x ".join(map(str, sizes))


def short_shape(shape: Mapping[str, float]) -> str:
    """A short shape: one size if all are equal."""
    values = list(shape.values())
    return str(values[0]) if len(set(values)) == 1 else "x".join(map(str, values))


def percent(value: float) -> str:
    """Per cent, as whole numbers, or below 10 with two significant digits."""
    return f"{value:.0f}%" if value >= 9.95 else f"{value:.2g}%"
