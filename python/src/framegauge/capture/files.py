"""The files of a capture: a pcapng and a document for each host."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from framegauge.agents.spools import pieces
from framegauge.capture.signs import SIGNS
from framegauge.errors import DiskFull, FolderNotEmpty, InputError
from framegauge.printable import one_line
from framegauge.testbeds.base import Host

__all__ = ["SCHEMA", "choose_folder", "fetch", "names", "trouble_line"]

SCHEMA = 1
SAY_SECONDS = 2.0
MOST_NAME = 100
NO_SPACE = 28

Json = dict[str, Any]


def choose_folder(asked: Path | None, now: float) -> Path:
    """The folder to write to; InputError if it cannot be made, FolderNotEmpty if something is in it."""
    folder = asked or Path(time.strftime("capture-%Y-%m-%dT%H-%M-%S", time.localtime(now)))
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out: found {folder}, expected a folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise FolderNotEmpty(f"--out: found files in {folder}, expected an empty folder, or none")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"--out: found no folder {folder.absolute().parent}, expected one")
    return folder


def names(hosts: Sequence[str]) -> dict[str, str]:
    """The file name of each host, without its ending: short where that is enough to tell them apart."""
    short = [_plain(name.partition(":")[2] if name.startswith(("netns:", "rack:")) else name) for name in hosts]
    file_names: dict[str, str] = {}
    for name, plain in zip(hosts, short, strict=True):
        base = plain if short.count(plain) == 1 else _plain(name)
        candidate, number = base, 1
        while candidate in file_names.values():
            number += 1
            candidate = f"{base}-{number}"
        file_names[name] = candidate
    return file_names


def _plain(name: str) -> str:
    """A name that is one on every file system, and no hidden file or option."""
    return re.sub(r"[^A-Za-z0-9._@-]", "-", name)[:MOST_NAME].lstrip(".-") or "host"


def fetch(host: Host, answer: Json, folder: Path, name: str, snap_bytes: int, say: Callable[[str], None]) -> Json:
    """Writes the capture of a host, and the document about it, which is returned. The spool is dropped after."""
    path = folder / f"{name}.pcapng"
    draft = path.with_name(path.name + ".new")
    begin = last_report = time.monotonic()
    try:
        with draft.open("wb") as file:
            for data, size in pieces(host.agent, answer["spool"]):
                file.write(data)
                if (now := time.monotonic()) - last_report >= SAY_SECONDS:
                    last_report = now
                    say(f"{host.name}: {file.tell() / 1e6:.0f} of {size / 1e6:.0f} MB fetched in {now - begin:.0f} s")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        kind = DiskFull if error.errno == NO_SPACE else InputError
        raise kind(f"{path}: found no way to write it ({error.strerror}), expected a place to") from None
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    details = {key: value for key, value in answer.items() if key != "spool"}
    document = {"schema": SCHEMA, "host": host.name, "file": path.name, "snap_bytes": snap_bytes, **details}
    (folder / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return document


def trouble_line(trouble: Json) -> str:
    """What trouble came, in one line."""
    signs = []
    for name, counters in trouble["signs"].items():
        counts = ", ".join(f"{one_line(counter, 60)} +{count}" for counter, count in counters.items())
        signs.append(f"{SIGNS.get(name, one_line(name, 60))} ({counts})")
    pairs = [
        f"{one_line(connection['local'], 60)} to {one_line(connection['remote'], 60)}"
        for connection in trouble["connections"]
    ]
    suffix = f"; of {', '.join(pairs[:3])}{', …' if len(pairs) > 3 else ''}" if pairs else ""
    return f"trouble: {', '.join(signs)}{suffix}"
