"""Seals of what a results folder keeps: whatever was changed after it was written is noticed when it is read.

A document, such as results.json, has the digest of its other keys, so that it may be formatted anew. A line of the
journal has that of its own text and of the seal before it: a line that was changed, lost, added or moved is noticed. It
also has the digests of the files that its run left. Whoever writes all of it anew can seal that, too: seals are against
accidents and careless edits, not against forgery (docs/why/threat-model.md). Folders that are older than seals are read
as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framegauge.errors import CorruptResults

__all__ = ["KEY", "NONE", "Chain", "check", "check_file", "check_line", "digest", "digest_of", "line", "sealed"]

KEY = "seal"
NONE: Mapping[str, str] = {}  # the digests of the files of a run whose line has none
_LETTERS = 32  # of a digest, in base 16: half of SHA-256, as in the journal of a roll-out
_BEFORE, _AFTER = f', "{KEY}": "'.encode(), b'"}'
REMEDY = "changed on purpose? framegauge report DIR --reseal"


def digest(data: bytes) -> str:
    """By which something is known again."""
    return hashlib.sha256(data).hexdigest()[:_LETTERS]


def digest_of(path: Path) -> str:
    """The same of a file, which may be large; OSError if it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_LETTERS]


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """A document with its seal, in place of any that it had; ValueError if it is no JSON."""
    others = {key: item for key, item in value.items() if key != KEY}
    # As it will be read: what is no text among the keys is, then, and has another place in their order.
    return {**others, KEY: _of(json.loads(json.dumps(others, allow_nan=False)))}


def check(found: Mapping[str, Any], where: str, remedy: str = REMEDY) -> bool:
    """Whether a document has a seal; CorruptResults if it is not that of its other keys."""
    if KEY not in found:
        return False
    try:
        fits = found[KEY] == _of({key: item for key, item in found.items() if key != KEY})
    except ValueError:  # what JSON does not have
        fits = False
    if not fits:
        raise CorruptResults(f"{where}: {KEY}: found other content, expected what was sealed ({remedy})")
    return True


def check_file(path: Path, data: bytes, files: Mapping[str, str]) -> bool:
    """Whether a file is one of those that its run left, as far as these have digests: an attempt that was killed may
    have left others. CorruptResults if it has other content."""
    if files and files.get(path.name, digest(data)) != digest(data):
        raise CorruptResults(f"{path}: found other content, expected what its run left ({REMEDY})")
    return not files or path.name in files


def line(text: bytes) -> bytes:
    """A line that is a JSON object with at least one key, with the seal of its own text."""
    return _with(text, digest(text))


def check_line(line: bytes, found: Mapping[str, Any], where: str) -> bool:
    """Whether a line, and what was read from it, has such a seal; CorruptResults if it is not that of its text."""
    if KEY not in found:
        return False
    text, _, _ = line.rpartition(_BEFORE)
    if line != _with(text + b"}", digest(text + b"}")):
        raise CorruptResults(f"{where}: {KEY}: found another line than was sealed, expected it as it was written")
    return True


def _with(text: bytes, seal: str) -> bytes:
    return text.removesuffix(b"}") + _BEFORE + seal.encode() + _AFTER


@dataclass
class Chain:
    """The seals of a journal, line by line."""

    _last: str = ""
    _is_sealed: bool = False
    unsealed: int = 0  # lines

    def seal(self, text: bytes) -> bytes:
        """The next line, which is a JSON object with at least one key, with its seal."""
        self._last, self._is_sealed = digest(self._last.encode() + text), True
        return _with(text, self._last)

    def check(self, line: bytes, found: Mapping[str, Any], where: str) -> None:
        """The next line, and what was read from it; CorruptResults if it is not the one that was written there."""
        if KEY not in found:
            self._last, self.unsealed = digest(self._last.encode() + line.rstrip()), self.unsealed + 1
            if self._is_sealed:
                raise CorruptResults(f"{where}: found no {KEY}, expected one as in the line before ({REMEDY})")
            return
        text, _, rest = line.rstrip().rpartition(_BEFORE)
        expected = digest(self._last.encode() + text + b"}")
        # A line is judged by what the one before it says, so that of several only those that changed are named.
        self._last, self._is_sealed = str(found[KEY]), True
        if rest != expected.encode() + _AFTER:
            raise CorruptResults(
                f"{where}: {KEY}: found another line than was sealed here, or none where one was before it, expected "
                f"the journal as it was written ({REMEDY})"
            )


def _of(others: Mapping[str, Any]) -> str:
    return digest(json.dumps(others, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())
