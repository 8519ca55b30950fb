"""The applications that can be fetched: their version, and every file with its checksum, size and licence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

__all__ = ["APPS", "App", "File"]


@dataclass(frozen=True)
class File:
    """A file, by its Maven coordinates GROUP:ARTIFACT:VERSION[:CLASSIFIER]."""

    sha256: str
    size_bytes: int
    coordinates: str
    licence: str

    @property
    def name(self) -> str:
        """The name of the file as Maven copies it."""
        return "-".join(self.coordinates.split(":")[1:]) + ".jar"


@dataclass(frozen=True)
class App:
    """An application. Its files are listed in NAME.txt beside this module, which scripts/apps.py writes."""

    name: str
    version: str
    needed_for: str

    @property
    def full_name(self) -> str:
        """With its version: the name of its folder."""
        return f"{self.name}-{self.version}"

    @cached_property
    def files(self) -> tuple[File, ...]:
        """All files, in order of names."""
        text = (resources.files(__package__) / f"{self.name}.txt").read_text("utf-8")
        rows = (line.split(" ", 3) for line in text.splitlines() if not line.startswith("#"))
        return tuple(File(sha256, int(size), coordinates, licence) for sha256, size, coordinates, licence in rows)

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(each.size_bytes for each in self.files)

    @property
    def licences(self) -> dict[str, int]:
        """The number of files by licence, the most frequent first."""
        return dict(Counter(each.licence for each in self.files).most_common())


APPS: Mapping[str, App] = {each.name: each for each in (App("hadoop", "3.4.2", "workload mapreduce"),)}
