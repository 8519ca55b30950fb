"""Rates of requests: a number per second, or none for a closed loop."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from framegauge.errors import QuantityError
from framegauge.files.types import as_list

__all__ = ["Frequencies"]

RATE_EXPECTED = "requests per second above 0, such as 1000, or null for a closed loop"


def _frequency(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise QuantityError(value, RATE_EXPECTED)
    return float(value)


_FREQUENCY = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}], "description": RATE_EXPECTED}
Frequency = Annotated[float | None, PlainValidator(_frequency), WithJsonSchema(_FREQUENCY)]
Frequencies = Annotated[list[Frequency], BeforeValidator(as_list, json_schema_input_type=Frequency | list[Frequency])]
