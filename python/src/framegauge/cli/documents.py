"""Writes what a report is asked to be written as: a page, Markdown, pictures. Whole files or none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from framegauge.cli import output
from framegauge.results.journal import Saved

if TYPE_CHECKING:
    from framegauge.report.pictures.material import Material

__all__ = ["Wanted", "page", "write"]


@dataclass(frozen=True)
class Wanted:
    """Where to write what; None: not asked for."""

    html: Path | None = None
    markdown: Path | None = None
    pictures: Path | None = None

    def check(self) -> None:
        """InputError, before anything is drawn, if a place is not there."""
        output.one_to_standard_output({"--html": self.html, "--markdown": self.markdown})
        output.check_file("--html", self.html)
        output.check_file("--markdown", self.markdown)
        output.check_folder("--pictures", self.pictures)


def page(saved: Saved, summary: dict[str, object]) -> str:
    """The page of a judged study."""
    # Charts take a second to import, which other verbs must not wait for.
    from framegauge.report.page import html
    from framegauge.report.pictures import material

    return html.page(material.gather(saved, summary))


def write(saved: Saved, summary: dict[str, object], wanted: Wanted) -> list[Path]:
    """Writes what is wanted; the paths, in the order of Wanted. InputError if one cannot be written."""
    wanted.check()
    if wanted == Wanted():
        return []
    from framegauge.report import markdown
    from framegauge.report.page import html
    from framegauge.report.pictures import material

    found = material.gather(saved, summary)
    written = []
    if wanted.html is not None:
        written.append(_write("--html", wanted.html, html.page(found).encode()))
    if wanted.markdown is not None:
        near = None
        if wanted.pictures is not None:
            near = Path(os.path.relpath(wanted.pictures, wanted.markdown.absolute().parent)).as_posix()
        written.append(_write("--markdown", wanted.markdown, markdown.markdown(found, near).encode()))
    if wanted.pictures is not None:
        for name, data in _pictures(found):
            wanted.pictures.mkdir(exist_ok=True)
            _write("--pictures", wanted.pictures / name, data)
        written.append(wanted.pictures)
    return written


def _pictures(found: Material) -> Iterator[tuple[str, bytes]]:
    """Every chart twice: its file's name, and what is in it."""
    from framegauge.plots import draw

    for each in found.pictures:
        yield f"{each.name}.svg", draw.standalone(each.drawn, each.name, each.title, each.text).encode()
        yield f"{each.name}.png", draw.png(each.drawn)


def _write(option: str, path: Path, data: bytes) -> Path:
    output.write(option, path, data)
    return path
