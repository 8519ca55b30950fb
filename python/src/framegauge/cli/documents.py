"""Writes what a report is asked to be written as: a page, Markdown, pictures. Whole files or none."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framegauge.cli import output
from framegauge.errors import InputError
from framegauge.results.journal import Saved

if TYPE_CHECKING:
    from framegauge.report.decision.model import Decision, Risks
    from framegauge.report.pictures.material import Material

__all__ = ["Wanted", "begin", "decided", "page", "write"]

DECISION = "decision.html"  # in the results folder


@dataclass(frozen=True)
class Wanted:
    """Where to write what; None: not asked for. `decision`: of the decision alone. `paths` is the file of a check."""

    html: Path | None = None
    markdown: Path | None = None
    pictures: Path | None = None
    decision: bool = False
    printed: bool = False  # as JSON, so that no page is needed
    paths: Path | None = None

    def check(self) -> None:
        """InputError, before anything is drawn, if a place is not there, or options do not go together."""
        if self.decision and self.pictures is not None:
            raise InputError("--pictures: found --decision, too, expected one of them: a decision has no charts")
        if self.paths is not None and not self.decision and self.html is None and self.markdown is None:
            raise InputError(
                "--check: found nothing that would show it, expected --decision, --html or --markdown, too"
            )
        output.one_to_standard_output({"--html": self.html, "--markdown": self.markdown})
        output.check_file("--html", self.html)
        output.check_file("--markdown", self.markdown)
        output.check_folder("--pictures", self.pictures)

    def check_document(self) -> Mapping[str, Any] | None:
        """What the check printed, if there is one."""
        if self.paths is None:
            return None
        from framegauge.check import saved as check_file

        return check_file.read(self.paths)

    def risks(self) -> Risks | None:
        """What the check found, if there is one."""
        from framegauge.report.check import risks

        document = self.check_document()
        return None if document is None else risks.of_check(document)


def begin() -> None:
    """Begins what `page` will need, beside what the caller does until then. Errors are those of `page`."""

    def work() -> None:
        with contextlib.suppress(Exception):
            from framegauge.plots import draw
            from framegauge.report.page import html
            from framegauge.report.pictures import material

            del html, material
            draw.warm()

    threading.Thread(target=work, name="page").start()


def page(saved: Saved, summary: dict[str, object]) -> str:
    """The page of a judged study."""
    # Charts take a second to import, which other verbs must not wait for.
    from framegauge.report.page import html
    from framegauge.report.pictures import material

    return html.page(material.gather(saved, summary))


def write(saved: Saved, summary: dict[str, object], wanted: Wanted) -> list[Path]:
    """Writes what is wanted; the paths, in the order of Wanted. InputError if one cannot be written."""
    if wanted.html is None and wanted.markdown is None and wanted.pictures is None:
        return []
    from framegauge.report import markdown
    from framegauge.report.page import html
    from framegauge.report.pictures import material

    page_material = material.gather(saved, summary, wanted.risks())
    written = []
    if wanted.html is not None:
        written.append(_write("--html", wanted.html, html.page(page_material).encode()))
    if wanted.markdown is not None:
        near = None
        if wanted.pictures is not None:
            near = Path(os.path.relpath(wanted.pictures, wanted.markdown.absolute().parent)).as_posix()
        written.append(_write("--markdown", wanted.markdown, markdown.markdown(page_material, near).encode()))
    if wanted.pictures is not None:
        for name, data in _pictures(page_material):
            wanted.pictures.mkdir(exist_ok=True)
            _write("--pictures", wanted.pictures / name, data)
        written.append(wanted.pictures)
    return written


def decided(saved: Saved, summary: dict[str, object], wanted: Wanted) -> tuple[Decision, list[Path]]:
    """The decision, and where it was written: in the results folder, if `wanted` names no place."""
    from framegauge.report import markdown
    from framegauge.report.decision import content
    from framegauge.report.drawings import drawings
    from framegauge.report.page import decision as decision_page

    def page(decision: Decision) -> str:
        return decision_page.page(decision, drawings(wanted.check_document(), summary))

    result = content.decide(summary, saved.folder, wanted.risks())
    places = {"--html": wanted.html, "--markdown": wanted.markdown}
    if wanted.html is None and wanted.markdown is None and not wanted.printed:
        places = {"--decision": saved.folder / DECISION}
    makers = {"--markdown": markdown.decision}
    return result, [
        _write(option, path, makers.get(option, page)(result).encode())
        for option, path in places.items() if path is not None
    ]  # fmt: skip


def _pictures(page_material: Material) -> Iterator[tuple[str, bytes]]:
    """Every chart twice: its file's name, and what is in it."""
    from framegauge.plots import draw

    for picture in page_material.pictures:
        yield f"{picture.name}.svg", draw.standalone(picture.drawn, picture.name, picture.title, picture.text).encode()
        yield f"{picture.name}.png", draw.png(picture.drawn)


def _write(option: str, path: Path, data: bytes) -> Path:
    output.write(option, path, data)
    return path
