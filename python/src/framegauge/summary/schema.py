"""The JSON Schemas of summary.json, and of the documents of a comparison and of a decision."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

__all__ = ["comparison_schema", "decision_schema", "several_schema", "summary_schema"]


def summary_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of summary.json."""
    return _read("summary")


def decision_schema() -> dict[str, Any]:
    """The schema of the document of `framegauge report --decision`."""
    return _read("decision")


def comparison_schema() -> dict[str, Any]:
    """The schema of the document of `framegauge compare`; its verdicts are defined as in summary.json."""
    schema, shared = _read("comparison"), _read("summary")["$defs"]
    used = ("conditions", "levels", "discipline", "arm", "metric", "interval", "verdict")
    schema["$defs"] |= {name: shared[name] for name in used}
    return schema


def several_schema() -> dict[str, Any]:
    """The schema of the document of `framegauge compare` with several results."""
    one, whole = comparison_schema(), _read("several")
    shared = one.pop("$defs")
    whole["$defs"] = {**shared, "comparison": {key: value for key, value in one.items() if key != "$schema"}}
    return whole


def _read(name: str) -> dict[str, Any]:
    text = files("framegauge.summary").joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
