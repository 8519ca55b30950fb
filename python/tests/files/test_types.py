"""The types of values in a study file."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import ValidationError

from framegauge.files.types import Model, OneOrMore

Way = Literal["in", "out"]


class Example(Model):
    ways: OneOrMore[Way]


@pytest.mark.parametrize(("written", "read"), [("out", ["out"]), (["in", "out"], ["in", "out"])])
def test_a_value_is_a_list_of_one(written: object, read: list[str]) -> None:
    assert Example.model_validate({"ways": written}).ways == read


@pytest.mark.parametrize("written", [[], "up", ["in", "up"], {"in": "out"}])
def test_a_list_has_a_valid_item_at_least(written: object) -> None:
    with pytest.raises(ValidationError):
        Example.model_validate({"ways": written})


def test_the_schema_knows_both_forms() -> None:
    one = {"enum": ["in", "out"], "type": "string"}
    found = Example.model_json_schema()["properties"]["ways"]["anyOf"]
    assert found == [one, {"type": "array", "items": one, "minItems": 1}]
