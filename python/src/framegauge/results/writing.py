"""Files of results on disk: whole or not at all, and a full disk in one line."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from framegauge.errors import DiskFull

__all__ = ["FULL", "as_json", "disk", "sync_folder", "write_whole"]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def disk(path: Path) -> Iterator[None]:
    """Turns a full disk into a DiskFull error of one line; other system errors are passed on."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(
                f"{path}: cannot be written ({os.strerror(error.errno or 0)}); free some space and run again"
            ) from error
        raise


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that it exists completely or not at all, even after a crash."""
    draft = path.with_name(path.name + ".new")
    try:
        with disk(path), draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes sure that the names in a folder survive a power failure."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def as_json(value: Mapping[str, Any]) -> bytes:
    """JSON with a line per key: indentation would take the encoder ten times as long."""
    lines = (
        f" {json.dumps(key)}: {json.dumps(item, ensure_ascii=False, allow_nan=False)}" for key, item in value.items()
    )
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()
