"""Where output goes: the terminal, a file, written whole or not at all, or `-` for standard output.

Everything that is printed passes here, or a console of cli/console.py: words of hosts, files and results must neither
steer the terminal nor look like lines of ours.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, TextIO

from framegauge.cli.enduring import Enduring, endure
from framegauge.errors import InputError
from framegauge.printable import printable

__all__ = [
    "STANDARD_OUTPUT", "check_file", "check_folder", "exact", "finish", "has_left", "one_to_standard_output", "place",
    "prepare", "replacing", "say", "say_plainly", "show", "show_json", "show_json_rows", "show_json_text", "stream",
    "touched", "write",
]  # fmt: skip

STANDARD_OUTPUT = Path("-")


def prepare() -> None:
    """Makes both streams take every character, whatever their encoding is, and endure their end."""
    endure()
    for output_stream in (sys.stdout, sys.stderr):
        if isinstance(output_stream, io.TextIOWrapper):
            output_stream.reconfigure(errors="backslashreplace")


def show(*lines: str) -> None:
    """Prints lines, each of which is made printable as one line."""
    for line in lines:
        print(printable(line), flush=True)


def exact(text: str) -> None:
    """Prints a text of ours as it is."""
    print(text, flush=True)


def show_json(document: object, indent: int | None = None) -> None:
    """Prints a document as JSON, which escapes what cannot be printed."""
    exact(json.dumps(document, indent=indent))


def show_json_rows(document: Mapping[str, object]) -> None:
    """Prints the same as `show_json` with an indent of 2, row by row: lists may be longer than memory."""
    print("{", end="")
    for place, (key, value) in enumerate(document.items()):
        print(f"{',' if place else ''}\n  {json.dumps(key)}: ", end="")
        if isinstance(value, Sequence) and not isinstance(value, str):
            print("[", end="")
            for row, item in enumerate(value):
                print(f"{',' if row else ''}\n    {_indented(item, 4)}", end="")
            print("\n  ]" if value else "]", end="")
        else:
            print(_indented(value, 2), end="")
    exact("\n}")


def _indented(value: object, spaces: int) -> str:
    """A value as JSON, all lines of which but the first stand so far to the right."""
    return json.dumps(value, indent=2).replace("\n", "\n" + " " * spaces)


def show_json_text(text: str) -> None:
    """Prints the text of a JSON document, in which characters that cannot be printed are escaped; it stays the same
    document."""
    encodes_all = (sys.stdout.encoding or "utf-8").lower().replace("-", "").startswith("utf")
    exact(
        "".join(
            char if char == "\n" or (char.isprintable() and (encodes_all or char.isascii())) else json.dumps(char)[1:-1]
            for char in text.rstrip("\n")
        )
    )


def say(text: str) -> None:
    """Tells the user something on standard error. It may be several lines, if all words from outside are one line
    each."""
    say_plainly(f"framegauge: {text}")


def say_plainly(text: str) -> None:
    """As `say`, without the program's name."""
    print("\n".join(map(printable, text.split("\n"))), file=sys.stderr, flush=True)


def stream() -> TextIO:
    """Standard output, for a screen."""
    return sys.stdout


def finish() -> None:
    """Writes out what was printed, and says if it could not be written. A reader that has left knows."""
    sys.stdout.flush()
    raw = _raw()
    if raw is not None and raw.trouble:
        say(f"standard output: {raw.trouble}: not all of it was written")


def has_left() -> bool:
    """Whether the reader of standard output has left; who prints for as long as it is read ends then."""
    raw = _raw()
    return raw is not None and raw.has_left


def _raw() -> Enduring | None:
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, Enduring) else None


def place(text: str) -> Path:
    """What an option names: `-` is standard output, and `./-` a file of that name."""
    path = Path(text)
    return path.absolute() if path == STANDARD_OUTPUT and text != "-" else path


def one_to_standard_output(asked: Mapping[str, Path | bool | None]) -> str | None:
    """The option whose output goes to standard output, if any; InputError if there are several.

    `asked` has each option's file, or True where the option itself means standard output, as --json does.
    """
    options = [option for option, value in asked.items() if value is True or value == STANDARD_OUTPUT]
    if len(options) > 1:
        raise InputError(f"{' and '.join(options)}: found several outputs on standard output, expected one")
    return options[0] if options else None


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
    with replacing(option, path, new) as draft:
        draft.write(data)


def touched(path: Path) -> tuple[Path, Path]:
    """What writing a file touches: itself, and the draft beside it that takes its place."""
    return path, path.with_name(path.name + ".new")


@contextlib.contextmanager
def replacing(option: str, path: Path, new: bool = False) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of an option's file, or becomes a `new` one, when all went well.
    InputError if it cannot be written; then nothing is left behind. A device or a pipe is written to, never replaced:
    root would turn /dev/null into a page."""
    path, draft = touched(path)
    try:
        if not new and path.exists() and not path.is_file():
            with open(path, "wb") as device:
                yield device
            return
        with open(draft, "wb") as file:
            yield file
        if new:
            path.touch(exist_ok=False)
        draft.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink()  # none beside a device
        if not isinstance(error, OSError):
            raise
        raise InputError(f"{option}: found no way to write {path} ({error.strerror}), expected a place to") from None
