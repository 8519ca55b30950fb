"""Values of a scene that are drawn anew for each variant, and the drawing."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Among:
    """One of these, each as likely."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Between:
    """An even draw of the logarithm between two numbers; whole, if both are."""

    low: float
    high: float


@dataclass(frozen=True)
class From:
    """What follows from the values that are drawn before: the program, the payload of a full segment, the RTT."""

    tell: Callable[[Any, int, float], Any]


def among(*values: Any) -> Among:
    """One of these."""
    return Among(values)


def draw(value: Any, draws: random.Random, known: tuple[Any, int, float] | None = None) -> Any:
    """The value with all draws within it made."""
    match value:
        case Among(values):
            return draw(draws.choice(values), draws, known)
        case Between(low, high):
            number = math.exp(draws.uniform(math.log(low), math.log(high)))
            return round(number) if isinstance(low, int) and isinstance(high, int) else number
        case From(tell):
            assert known is not None, "what it follows from is drawn later"
            return tell(*known)
        case tuple() | list():
            return tuple(draw(each, draws, known) for each in value)
        case Mapping():
            return {name: draw(each, draws, known) for name, each in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value) if not each.name.startswith("_")]
        return type(value)(**{name: draw(getattr(value, name), draws, known) for name in names})
    return value
