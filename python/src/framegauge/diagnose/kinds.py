"""All kinds of findings, and what is known of each beforehand: the agent's table (crates/diagnosis/src/kinds/table.rs).

`kinds.json` is what `framegauge-agent diagnose --kinds` prints; a test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["GROUPS", "KINDS", "LIMITS", "NOTES", "QUALITY", "TABLE", "WORTH_NOTHING", "Kind"]

TABLE = Path(__file__).with_name("kinds.json")


@dataclass(frozen=True)
class Kind:
    """A row of the table: `about` says what a finding of it is about, `limits` by which thresholds it is decided."""

    name: str
    about: str
    group: str
    means: str
    headline: str
    remedy: str
    limits: tuple[str, ...]


_READ = json.loads(TABLE.read_bytes())
KINDS: Mapping[str, Kind] = {row["name"]: Kind(**{**row, "limits": tuple(row["limits"])}) for row in _READ["kinds"]}
# The names of all limits.
LIMITS = tuple(_READ["limits"])
# What a group says in a legend.
GROUPS: Mapping[str, str] = {group["name"]: group["words"] for group in _READ["groups"]}
# What a capture cannot tell, and why.
QUALITY = tuple(name for name, kind in KINDS.items() if kind.about == "capture")
# Worth knowing, and no fault by itself.
NOTES = tuple(name for name, kind in KINDS.items() if kind.about == "note")
# What every connection has: somebody is always the limit.
WORTH_NOTHING = tuple(name for name, kind in KINDS.items() if kind.about == "pace")
