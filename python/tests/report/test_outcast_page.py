"""The page of TCP Outcast: what is counted in its table of drops and marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from helpers.support import bench

details, kept = bench("outcast.details"), bench("kept")


def recorded(
    folder: Path, number: int, cc: str, fates: dict[str, tuple[int, int, int]], excluded: bool = False
) -> None:
    """A run with so many frames received, dropped and marked by port."""
    place = folder / f"runs/{number}"
    place.mkdir(parents=True)
    keys = ("received_frames", "dropped_frames", "marked_frames")
    ports = [{"port": port, **dict(zip(keys, counts, strict=True))} for port, counts in fates.items()]
    (place / "record.json").write_text(json.dumps({"measure": {"fabric": {"ports": ports}}}))
    run: dict[str, Any] = {"number": number, "conditions": {"congestion_control": cc}, "level": "taildrop"}
    with (folder / "runs.jsonl").open("a") as journal:
        journal.write(json.dumps({**run, "excluded": ["it was late"] if excluded else []}) + "\n")


def test_marks_and_drops_are_shares_of_what_came_to_a_port(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    studies = kept.Kept("outcast", tmp_path, 1)
    folder = studies.results("dctcp-kernel", "study")
    for number, (dropped, marked) in enumerate([(10, 0), (20, 500), (30, 250)]):
        recorded(folder, number, "dctcp", {"far>near": (1000, dropped, 0), "near>h14": (500, 5, marked)})
    recorded(folder, 3, "dctcp", {"far>near": (10, 10, 10), "near>h14": (10, 10, 10)}, excluded=True)
    heads, rule, *rows = details.marks(studies)
    assert heads.count("|") == rule.count("|") == 9
    assert rows == ["| dctcp-kernel | dctcp | taildrop | rack | 2 % | 0 % | 1 % | 50 % |"]
