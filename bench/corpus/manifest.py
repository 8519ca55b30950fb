"""The files of a corpus with their SHA-256, and what it was made with."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.corpus import datasheet
from bench.corpus.splits import RULE, SPLITS

import framegauge

MANIFEST, SPLIT_FILE, SCHEMA_FILE, DATASHEET = "manifest.json", "splits.json", "corpus.schema.json", "README.md"
NAME, LICENCE = "framegauge-corpus", "CC-BY-4.0"
OWN_SCHEMA = Path(__file__).with_name(SCHEMA_FILE)
SCHEMA = 1


def truths(folder: Path) -> Iterator[dict[str, Any]]:
    """The truth of each run, by name."""
    for path in sorted((folder / "runs").glob("*/truth.json")):
        yield json.loads(path.read_bytes())


def files(folder: Path) -> list[Path]:
    """All files of a corpus but its manifest, those of finished runs only."""
    hidden = {path for path in folder.glob("runs/.*") if path.is_dir()}
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST and not hidden & set(path.parents)
    ]


def digest(path: Path) -> str:
    """SHA-256, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def splits(folder: Path) -> dict[str, Any]:
    """The runs of each split."""
    runs: dict[str, list[str]] = {name: [] for name in SPLITS}
    for truth in truths(folder):
        runs[truth["split"]].append(truth["run"])
    return {"schema": SCHEMA, "rule": RULE, "runs": runs}


def write(folder: Path) -> int:
    """Write the datasheet, the splits, the schema and the manifest; how many files it lists."""
    (folder / SCHEMA_FILE).write_bytes(OWN_SCHEMA.read_bytes())
    (folder / SPLIT_FILE).write_text(json.dumps(splits(folder), indent=1) + "\n")
    (folder / DATASHEET).write_text(datasheet.written(list(truths(folder))))
    listed = {
        str(path.relative_to(folder)): {"sha256": digest(path), "bytes": path.stat().st_size} for path in files(folder)
    }
    made_with = {"framegauge": framegauge.__version__, "kernel": platform.release(), "machine": platform.machine()}
    whole = {"schema": SCHEMA, "name": NAME, "licence": LICENCE, "made_with": made_with, "files": listed}
    (folder / MANIFEST).write_text(json.dumps(whole, indent=1) + "\n")
    return len(listed)


def problems(folder: Path) -> Iterator[str]:
    """Where the files differ from the manifest."""
    path = folder / MANIFEST
    if not path.exists():
        yield f"{path}: found no file, expected the manifest of a corpus"
        return
    listed: dict[str, dict[str, Any]] = json.loads(path.read_bytes())["files"]
    there = {str(file.relative_to(folder)) for file in files(folder)}
    for name in sorted(there - set(listed)):
        yield f"{name}: found a file, expected none, since the manifest lacks it"
    for name in sorted(set(listed) - there):
        yield f"{name}: found no file, expected one of the manifest"
    for name in sorted(there & set(listed)):
        if (own := digest(folder / name)) != listed[name]["sha256"]:
            yield f"{name}: found SHA-256 {own}, expected {listed[name]['sha256']}"
