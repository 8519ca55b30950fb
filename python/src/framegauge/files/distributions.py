"""Distributions of sizes: fixed, published, or of one's own in a CSV file; drawn by inverse transform.

A table has bytes and the share of sizes up to them. Between two rows sizes are interpolated linearly, as simulators in
the field do (ns-2's EmpiricalRandomVariable). The share of the first row are sizes of just that many bytes.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from framegauge import quantities
from framegauge.errors import QuantityError

__all__ = ["EXPECTED", "PUBLISHED", "Beside", "Distribution", "parse", "read", "resolved"]

PUBLISHED = ("web-search", "data-mining")  # files of this folder, with their sources
EXPECTED = f"bytes such as 100 kB, {', '.join(PUBLISHED)}, or a file such as sizes.csv"
COLUMNS = ("bytes", "probability")
LARGEST_BYTES = 10**12
MOST_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class Distribution:
    """Sizes by share: `probability[i]` of all are at most `bytes[i]`. `name` is what a study file says."""

    name: str
    bytes: tuple[int, ...]
    probability: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean in bytes."""
        sizes, shares = np.array(self.bytes, float), np.array(self.probability)
        return float(sizes[0] * shares[0] + ((sizes[1:] + sizes[:-1]) / 2 * np.diff(shares)).sum())

    def at(self, shares: np.ndarray) -> np.ndarray:
        """The sizes at these shares, each from 0 to 1: whole bytes, at least one."""
        sizes: np.ndarray = np.maximum(1, np.rint(np.interp(shares, self.probability, self.bytes)))
        return sizes.astype(np.int64)

    def as_json(self) -> Any:
        """As a study file has it: its name, or the whole table of a file, so that a resolved study needs no other."""
        if not self.name.endswith(".csv"):
            return self.name
        return {"file": self.name, "bytes": list(self.bytes), "probability": list(self.probability)}


class Beside:
    """The files that a study file names, by their names, relative to its folder. Once read, they stay as they were.

    `kept`: where copies of large ones are, by their paths.
    """

    def __init__(
        self, folder: Path, known: Mapping[str, str] | None = None, kept: Mapping[str, Path] | None = None
    ) -> None:
        self.folder, self.texts, self.kept = folder, dict(known or {}), dict(kept or {})

    def read(self, name: str) -> str:
        """The text of a file; OSError or UnicodeDecodeError if it cannot be read, ValueError if it is too large."""
        if name not in self.texts:
            with (self.folder / name).open("rb") as file:
                data = file.read(MOST_FILE_BYTES + 1)
            if len(data) > MOST_FILE_BYTES:
                raise ValueError(f"more than {MOST_FILE_BYTES} bytes")
            self.texts[name] = data.decode("utf-8")
        return self.texts[name]


def parse(value: object, beside: Callable[[str], str] | None) -> Distribution:
    """The distribution that a study file names; QuantityError in one line for what is none. `beside` reads files."""
    if isinstance(value, Mapping):
        return resolved(value)
    if isinstance(value, str) and value in PUBLISHED:
        return _published(value)
    if isinstance(value, str) and value.endswith(".csv"):
        return _beside(value, beside)
    try:
        size = quantities.parse_bytes(value)
    except QuantityError:
        raise QuantityError(value, EXPECTED) from None
    if not 1 <= size <= LARGEST_BYTES:
        raise QuantityError(value, f"1 B to {quantities.print_bytes(LARGEST_BYTES)}")
    return Distribution(quantities.exact_bytes(size), (size,), (1.0,))


def resolved(value: Mapping[Any, Any]) -> Distribution:
    """The distribution whose whole table a resolved study has; QuantityError if it is none."""
    if set(value) != {"file", *COLUMNS} or not all(isinstance(value[name], list) for name in COLUMNS):
        raise QuantityError(dict(value), f"{EXPECTED}, or its whole table: file, bytes, probability")
    name, sizes, shares = str(value["file"]), value["bytes"], value["probability"]
    if len(sizes) != len(shares):
        raise QuantityError(f"{len(sizes)} bytes and {len(shares)} probabilities", "as many of both")
    rows = [
        (f"row {place}", str(size), str(share))
        for place, (size, share) in enumerate(zip(sizes, shares, strict=True), 1)
    ]
    return _checked(name, rows)


@cache
def _published(name: str) -> Distribution:
    return read(name, (resources.files("framegauge") / "files" / f"{name}.csv").read_text("utf-8"))


def _beside(name: str, beside: Callable[[str], str] | None) -> Distribution:
    if beside is None:
        raise QuantityError(name, "no file where there is no folder to look in: its whole table")
    try:
        text = beside(name)
    except UnicodeDecodeError as error:
        raise QuantityError(name, f"a file in UTF-8, found another byte at {error.start}") from None
    except OSError as error:
        raise QuantityError(name, f"a file that can be read, beside the study file ({error.strerror})") from None
    except ValueError as error:
        raise QuantityError(name, f"a table of at most {MOST_FILE_BYTES} bytes ({error})") from None
    return read(name, text)


def read(name: str, text: str) -> Distribution:
    """The table in a CSV file with the columns bytes and probability; `#` begins a comment. QuantityError with the line
    of the first thing that is wrong."""
    lines = [(number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line]
    header = ",".join(COLUMNS)
    if not lines or lines[0][1].replace(" ", "") != header:
        first_line = lines[0][1][:80] if lines else "nothing"
        raise QuantityError(f"{name}: {first_line}", f"the columns {header} in its first line")
    rows: list[tuple[str, str, str]] = []
    for number, line in lines[1:]:
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        if len(cells) != len(COLUMNS):
            raise QuantityError(f"{name}: line {number}: {line[:80]}", f"two columns, {header}")
        rows.append((f"line {number}", cells[0], cells[1]))
    return _checked(name, rows)


def _checked(name: str, rows: Sequence[tuple[str, str, str]]) -> Distribution:
    """A table whose sizes do not fall, whose shares rise, and that ends with all of them."""
    sizes: list[int] = []
    shares: list[float] = []
    for where, size, share in rows:
        bytes_, probability = _number(size), _number(share)
        if bytes_ is None or bytes_ != int(bytes_) or not 0 <= bytes_ <= LARGEST_BYTES:
            raise QuantityError(f"{name}: {where}: {size[:40]}", f"whole bytes from 0 to {LARGEST_BYTES}")
        if probability is None or not 0 <= probability <= 1:
            raise QuantityError(f"{name}: {where}: {share[:40]}", "a probability from 0 to 1")
        if sizes and bytes_ < sizes[-1]:
            raise QuantityError(f"{name}: {where}: {size[:40]}", f"at least the {sizes[-1]} bytes of the row before")
        if shares and probability <= shares[-1]:
            raise QuantityError(f"{name}: {where}: {share[:40]}", f"more than the {shares[-1]:g} of the row before")
        sizes.append(int(bytes_))
        shares.append(probability)
    if not shares or shares[-1] != 1:
        raise QuantityError(f"{name}: {f'{shares[-1]:g}' if shares else 'no rows'}", "1 as the last probability")
    if sizes[-1] == 0:
        raise QuantityError(f"{name}: no bytes", "more than 0 bytes in the last row")
    return Distribution(name, tuple(sizes), tuple(shares))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
