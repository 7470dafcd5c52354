"""Format numbers and errors for the window and the terminal."""

from __future__ import annotations

import datetime
import math

from studio.core.discovery import failing_plugin
from studio.core.errors import StudioError, os_error_reason

VERDICTS = {"improving": "Still improving", "good enough": "Good enough", "copying": "Starting to copy"}
_DASH = "\u2013"
_LEAST_DECIMAL, _LEAST_POWER = 1e-4, 1e6  # numbers at an axis outside these bounds are written with a power of ten
_TIMES = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def best_checkpoint(step: int) -> str:
    """Return 'Best checkpoint so far: step 1,200.'"""
    return f"Best checkpoint so far: step {number(step)}."


def number(value: int) -> str:
    """Format with thousands separators: 19200 -> '19,200'."""
    return f"{value:,}"


def lower_first(text: str) -> str:
    """Return the text with a small first letter, for use in a sentence; 'EMA decay' stays as it is."""
    return text if text[:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def count(value: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun: (1, 'sprite') -> '1 sprite', (19200, 'sprite') -> '19,200 sprites'."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Format a duration with its two largest units: 200.0 -> '3 min 20 s'; a dash for infinity and NaN."""
    if not math.isfinite(seconds):
        return _DASH
    if 0 < seconds < 9.95:
        return f"{max(seconds, 0.1):.1f}".removesuffix(".0") + " s"
    whole = round(max(seconds, 0.0))
    for size, unit, smaller_size, smaller_unit in _TIMES:
        if whole >= size:
            large, small = whole // size, whole % size // smaller_size
            return f"{large:,} {unit} {small} {smaller_unit}" if small else f"{large:,} {unit}"
    return f"{whole} s"


def time_left(seconds: float) -> str:
    """Format the remaining time: 200.0 -> '3 min 20 s left'; '' for infinity (unknown)."""
    return f"{duration(seconds)} left" if math.isfinite(seconds) else ""


def local_time(moment: str) -> str:
    """Format an ISO 8601 time as local time: '2026-11-21T04:03:00+00:00' -> '2026-11-21 04:03'.

    Return other texts unchanged.
    """
    try:
        return datetime.datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):  # no time, or out of range for the local time
        return moment


def memory(used_bytes: int, total_bytes: int = 0) -> str:
    """Format memory: '1.2 of 8 GB', or '1.2 GB' without a total. A GB is 1024 MB, as for graphics cards."""
    unit, size = _memory_unit(total_bytes or used_bytes)
    used = _short(used_bytes / size)
    return f"{used} of {_short(total_bytes / size)} {unit}" if total_bytes else f"{used} {unit}"


def rate(per_second: float, noun: str = "sprites") -> str:
    """Format a speed: 182.3 -> '182 sprites/s', 5.83 -> '5.8 sprites/s'."""
    if not math.isfinite(per_second):
        return _DASH
    text = f"{per_second:.2g}" if 0 < per_second < 1 else _short(per_second)
    return f"{text} {noun}/s"


def describe_speedup(sprites_per_s: float, usual_sprites_per_s: float, same_share: float) -> str:
    """Describe the speed of a distilled network: 'Draws 180 sprites/s, 3 times as many as before; 90 % of ...'."""
    times = f"{_short(sprites_per_s / usual_sprites_per_s)} times as many as before"
    return f"Draws {rate(sprites_per_s)}, {times}; {percent(same_share)} of the pixels hardly differ."


def percent(share: float) -> str:
    """Format a share: 0.123 -> '12.3 %', 1.0 -> '100 %'."""
    if not math.isfinite(share):
        return _DASH
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def describe_agreement(difference: float) -> str:
    """Describe a relative difference: 3e-8 -> 'the same to 7 digits', 0.0123 -> 'the same (within 1.2 %)'."""
    if difference > 1e-3:
        return f"the same (within {100 * difference:.2g} %)"
    return f"the same to {math.floor(-math.log10(difference))} digits" if difference else "exactly the same"


def decimal(value: float) -> str:
    """Format a loss or another metric with four significant digits: '0.08124', '12,346', '1.2e-05'."""
    if math.isnan(value):
        return "NaN"
    if not math.isfinite(value):
        return "infinite"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def axis_label(value: float) -> str:
    """Format a number at an axis, short in every size: '0.05', '10,000', '2e6', '1e-5'."""
    if 0 < abs(value) < _LEAST_DECIMAL or abs(value) >= _LEAST_POWER:
        digits, exponent = f"{value:.3e}".split("e")
        return f"{float(digits):g}e{int(exponent)}"
    return decimal(value)


def predicted_and_true(number: float, true: float) -> str:
    """Return '12.5, true 12', or '12.5' if the true number is NaN (unknown)."""
    return decimal(number) if math.isnan(true) else f"{decimal(number)}, true {decimal(true)}"


def _memory_unit(size_bytes: int) -> tuple[str, int]:
    """Return the unit that gives `size_bytes` one to four digits, and the unit's bytes."""
    for unit, size in (("TB", 2**40), ("GB", 2**30), ("MB", 2**20)):
        if size_bytes >= size:
            return unit, size
    return "KB", 2**10


def _short(value: float) -> str:
    """Format with one decimal below ten, without decimals above: '1.2', '8', '1,234'."""
    return f"{value:,.0f}" if abs(value) >= 9.95 else f"{value:.1f}".removesuffix(".0")


def describe_error(error: Exception, *, otherwise: str) -> tuple[str, str]:
    """Return a title and a hint for an error, to show to users. otherwise: title for a bug in the studio."""
    if isinstance(error, StudioError):
        return error.title, error.hint
    if isinstance(error, OSError) and error.filename:
        return f"Can't use {error.filename}.", f"{os_error_reason(error)}."
    plugin = failing_plugin(error)
    return f"The plug-in '{plugin}' failed." if plugin else otherwise, f"{type(error).__name__}: {error}"
