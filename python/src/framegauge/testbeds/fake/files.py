"""The folder of an invented host's programs, which is a real one, and the signs that they are ready."""

from __future__ import annotations

import base64
import os
import re
import shutil
import time
import weakref
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from framegauge import temporary
from framegauge.testbeds.base import Json
from framegauge.testbeds.fake.testbed import FakeError

__all__ = ["FakeFolder", "ready"]

_LOOK_SECONDS = 0.002


class FakeFolder:
    """Answers the methods of a host's folder."""

    def __init__(self) -> None:
        self._made: temporary.Folder | None = None

    @property
    def _path(self) -> Path:
        if self._made is None:
            self._made = temporary.Folder()
            # Also of a host that nobody closes, as one in the process of a test.
            weakref.finalize(self, self._made.remove)
        return self._made.path

    def folder(self, params: Json) -> Json:
        """Where it is."""
        if params.get("limit_bytes") is not None:
            reason = "this host is not a rack's: its folder has no limit"
            raise FakeError(-32006, reason, {"what": reason})
        return {"path": str(self._path)}

    def files(self, params: Json) -> Json:
        """Writes files."""
        for path, file in [(self._beneath("host.files", file["path"]), file) for file in params["files"]]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_bytes(base64.b64decode(file["data"]))
            path.chmod(file.get("mode") or 0o644)
        return {}

    def fetch(self, params: Json) -> Json:
        """Reads a part of a file."""
        path = self._beneath("host.fetch", params["path"])
        try:
            data = path.read_bytes()
        except OSError as error:
            details = {"operation": f"read {params['path']}", "errno": error.errno, "error": error.strerror}
            raise FakeError(-32004, f"read {params['path']}: {error.strerror}", details) from None
        chunk = data[params["offset_bytes"] :][: params["length_bytes"]]
        return {"data": base64.b64encode(chunk).decode(), "size_bytes": len(data)}

    def list(self, params: Json) -> Json:
        """All regular files."""
        start = self._beneath("host.list", params["path"])
        paths = sorted(path for path in start.rglob("*") if path.is_file() and not path.is_symlink())
        size = {path.relative_to(self._path).as_posix(): path.stat().st_size for path in paths}
        return {"files": [{"path": path, "size_bytes": size[path]} for path in sorted(size)], "more": False}

    def clear(self, params: Json) -> Json:
        """Removes a file, a folder, or all that is in the folder."""
        path = self._beneath("host.clear", params["path"])
        for entry in path.iterdir() if path == self._path else [path]:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink(missing_ok=True)
        return {}

    def close(self) -> None:
        """Removes all of it."""
        if self._made is not None:
            self._made.remove()

    def _beneath(self, method: str, path: str) -> Path:
        if path.startswith("/") or {".", ".."} & set(PurePosixPath(path).parts):
            text = f"{method}: path: found {path!r}, expected names below the host's folder"
            raise FakeError(-32602, text, {"method": method})
        return self._path / path


def ready(params: Json, output: Callable[[str], bytes], ending: Callable[[], Json | None]) -> Json:
    """Waits for words in the output, or a file; an invented host has no ports."""
    if sum(params.get(sign) is not None for sign in ("port", "words", "file")) != 1:
        text = "process.ready: found none or several of port, words and file, expected one"
        raise FakeError(-32602, text, {"method": "process.ready"})
    start = time.monotonic()
    while True:
        status = ending()
        is_ready = params.get("file") is not None and os.path.exists(params["file"])
        if params.get("words") is not None:
            lines = [line for stream in ("stdout", "stderr") for line in output(stream).decode().splitlines()]
            is_ready = any(re.search(params["words"], line) for line in lines)
        seconds = time.monotonic() - start
        if is_ready or status is not None or seconds >= params["within_seconds"]:
            return {"ready": is_ready, "seconds": seconds, "ending": status}
        time.sleep(_LOOK_SECONDS)
