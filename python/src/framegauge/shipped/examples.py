"""The examples: their names, what they are about, and the files that one needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framegauge.shipped import places

__all__ = ["Example", "examples", "hint", "named", "names", "simulations"]

SUFFIX = ".yaml"
FOLDER = "examples"  # as people write a path to one


@dataclass(frozen=True)
class Example:
    """A file of examples/; its name is its path there, without the suffix."""

    name: str
    path: Path

    @property
    def text(self) -> str:
        """The whole file."""
        return self.path.read_text("utf-8")

    @property
    def about(self) -> str:
        """What it is about: the first sentence of its first comment, or what a lab says of itself."""
        lines = self.text.splitlines()
        comment = [line.removeprefix("#").strip() for line in lines[: _end_of_comment(lines)]]
        text = " ".join(comment) or next((line[7:] for line in lines if line.startswith("about: ")), "")
        return re.split(r"(?<=[.?])\s", text, maxsplit=1)[0]

    @property
    def files(self) -> list[Path]:
        """The file, and those beside it that it names, as paths in the folder of all examples."""
        import yaml  # for who copies, not for who asks for help

        beside = {self.path.parent / text for text in _texts(yaml.safe_load(self.text)) if _may_be_file(text)}
        return [path.relative_to(places.examples()) for path in (self.path, *sorted(filter(Path.is_file, beside)))]


def _end_of_comment(lines: list[str]) -> int:
    return next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))


def _may_be_file(text: str) -> bool:
    return bool(re.fullmatch(r"[\w./-]+\.\w+", text))


def _texts(value: Any) -> Iterator[str]:
    """Every text in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def names() -> list[str]:
    """The names of all, those of folders below last."""
    folder = places.examples()
    paths = [path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob(f"*{SUFFIX}")]
    return sorted(paths, key=lambda name: ("/" in name, name))


def examples() -> list[Example]:
    """All of them."""
    return [_example(name) for name in names()]


def named(text: str) -> Example | None:
    """The example that a name, its last part, or a path such as examples/pair.yaml means; None if there is none."""
    name = text.removesuffix(SUFFIX).rpartition(f"{FOLDER}/")[2].removeprefix("./")
    known = names()
    if name in known:
        return _example(name)
    short = [path for path in known if path.rpartition("/")[2] == name]
    return _example(short[0]) if len(short) == 1 else None


def _example(name: str) -> Example:
    return Example(name, places.examples() / f"{name}{SUFFIX}")


def simulations() -> list[str]:
    """The names of those that are only simulated."""
    return [example.name for example in examples() if re.search(r"^  kind: simulator$", example.text, re.MULTILINE)]


def hint(path: str | Path) -> str:
    """The end of an error about a file that is not there: how to get it if it is an example, else nothing."""
    example = named(str(path))
    return "" if example is None else f"; it is an example: framegauge examples {example.name} --copy ."
