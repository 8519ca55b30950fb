"""The JSON Schema of the result document, and the schema's number."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

__all__ = ["SCHEMA", "json_schema"]

SCHEMA = 1


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) that every result document fulfils."""
    text = files("framegauge.check.judgement").joinpath("check.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
