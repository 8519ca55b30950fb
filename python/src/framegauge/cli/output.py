"""Where output goes: a file, written whole or not at all, or `-` for standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from framegauge.errors import InputError

__all__ = ["STANDARD_OUTPUT", "check_file", "check_folder", "one_to_standard_output", "place", "say", "write"]

STANDARD_OUTPUT = Path("-")


def place(text: str) -> Path:
    """What an option names: `-` is standard output, and `./-` a file of that name."""
    path = Path(text)
    return path.absolute() if path == STANDARD_OUTPUT and text != "-" else path


def say(text: str) -> None:
    """One line on standard error, at once."""
    print(f"framegauge: {text}", file=sys.stderr, flush=True)


def one_to_standard_output(asked: Mapping[str, Path | bool | None]) -> str | None:
    """The option whose output goes to standard output, if any; InputError if there are several.

    `asked` has each option's file, or True where the option itself means standard output, as --json does.
    """
    found = [option for option, value in asked.items() if value is True or value == STANDARD_OUTPUT]
    if len(found) > 1:
        raise InputError(f"{' and '.join(found)}: found several outputs on standard output, expected one")
    return found[0] if found else None


def check_file(option: str, path: Path | None) -> None:
    """InputError, before anything is made, if a file cannot be there."""
    if path is None or path == STANDARD_OUTPUT:
        return
    _check_parent(option, path)
    if path.is_dir():
        raise InputError(f"{option}: found {path}, expected a file")


def check_folder(option: str, path: Path | None) -> None:
    """InputError if a folder cannot be there. Several files do not fit into standard output."""
    if path is None:
        return
    if path == STANDARD_OUTPUT:
        raise InputError(f"{option}: found -, expected a folder (./- is one of that name)")
    _check_parent(option, path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{option}: found {path}, expected a folder")


def _check_parent(option: str, path: Path) -> None:
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"{option}: found no folder {folder}, expected one")


def write(option: str, path: Path, data: bytes, new: bool = False) -> None:
    """The file of an option, replaced as a whole, or `new`; InputError if it cannot be written."""
    if path == STANDARD_OUTPUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    draft = path.with_name(path.name + ".new")
    try:
        draft.write_bytes(data)
        if new:
            path.touch(exist_ok=False)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InputError(f"{option}: found no way to write {path} ({error.strerror}), expected a place to") from None
