"""The JSON Schema of an estimate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["json_schema"]


def json_schema() -> dict[str, Any]:
    """What `framegauge estimate --json` prints, and `document.estimate` returns."""
    schema: dict[str, Any] = json.loads(Path(__file__).with_name("estimate.schema.json").read_bytes())
    return schema
