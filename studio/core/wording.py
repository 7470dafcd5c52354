"""Numbers for people."""

from __future__ import annotations


def number(value: int) -> str:
    """19200 -> '19,200'."""
    return f"{value:,}"


def count(value: int, noun: str, plural: str = "") -> str:
    """(1, 'sprite') -> '1 sprite', (19200, 'sprite') -> '19,200 sprites'."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """200.0 -> '3 min 20 s'."""
    raise NotImplementedError


def time_left(seconds: float) -> str:
    """200.0 -> '3 min 20 s left'; empty while unknown (infinite)."""
    raise NotImplementedError


def memory(used_bytes: int, total_bytes: int = 0) -> str:
    """'1.2 of 8 GB', or '1.2 GB' without a total."""
    raise NotImplementedError


def rate(per_second: float, noun: str = "sprites") -> str:
    """182.3 -> '182 sprites/s'."""
    raise NotImplementedError


def percent(share: float) -> str:
    """0.123 -> '12.3 %'."""
    raise NotImplementedError


def decimal(value: float) -> str:
    """A loss or another measure with four significant digits: '0.08124', '1.2e-05'."""
    raise NotImplementedError
