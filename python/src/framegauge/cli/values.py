"""Values of options: what --for, --every, --mtu, --rate and numbers may say, and the error that names the option.

Every option that takes a time, a rate or a size is read here, in the units that `quantities` knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from framegauge.errors import InputError, QuantityError
from framegauge.quantities import exact_bytes, parse_bits_per_second, parse_bytes, parse_seconds

__all__ = ["in_minutes", "in_seconds", "mtu", "number", "rate", "seconds", "size"]

HOUR = 3600.0
Quantity = TypeVar("Quantity", int, float)


def in_seconds(text: str) -> str:
    """The value of an option from before times had units: a number alone is in seconds."""
    return f"{text} s" if text.replace(".", "", 1).isdecimal() else text


def in_minutes(text: str) -> str:
    """The same in minutes."""
    return f"{text} min" if text.isdecimal() else text


def seconds(option: str, text: str, least: float, most: float) -> float:
    """A time within bounds."""
    return _bounded(option, text, parse_seconds, (least, most), f"{_time(least)} to {_time(most)}")


def size(option: str, text: str, least: int, most: int) -> int:
    """A number of bytes within bounds."""
    return _bounded(option, text, parse_bytes, (least, most), f"{exact_bytes(least)} to {exact_bytes(most)}")


def mtu(option: str, text: str, least: int, most: int) -> int:
    """An MTU within bounds."""
    return _bounded(option, text, parse_bytes, (least, most), f"{least} to {most} bytes")


def rate(option: str, text: str, word: str | None = None) -> int | None:
    """A rate above 0; None for the `word` that stands for none."""
    if word is not None and text == word:
        return None
    more = "" if word is None else f", or {word}"
    bits_per_second = _read(option, text, parse_bits_per_second, more)
    if bits_per_second < 1:
        raise InputError(f'{option}: found "{text}", expected more than 0 b/s{more}')
    return bits_per_second


def number(option: str, text: str, least: int, most: int, more: str = "") -> int:
    """A whole number within bounds; `more` is what else is expected."""
    if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
        raise InputError(f'{option}: found "{text}", expected a number from {least} to {most}{more}')
    return int(text)


def _read(option: str, text: str, parse: Callable[[object], Quantity], more: str = "") -> Quantity:
    try:
        return parse(text)
    except QuantityError as error:
        raise InputError(f"{option}: {error}{more}") from None


def _bounded(
    option: str, text: str, parse: Callable[[object], Quantity], bounds: tuple[Quantity, Quantity], expected: str
) -> Quantity:
    value = _read(option, text, parse)
    if not bounds[0] <= value <= bounds[1]:
        raise InputError(f'{option}: found "{text}", expected {expected}')
    return value


def _time(value: float) -> str:
    return f"{value / HOUR:g} h" if value >= HOUR else f"{value:g} s"
