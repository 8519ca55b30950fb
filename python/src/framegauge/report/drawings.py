"""What a decision shows beside its words: the matrix of a check, and the effect that leads."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from framegauge.report.check import html
from framegauge.report.decision.model import Drawing
from framegauge.report.page.markup import figure
from framegauge.report.pictures import charts

__all__ = ["drawings"]


def drawings(check: Mapping[str, Any] | None, summary: Mapping[str, Any] | None) -> list[Drawing]:
    """The drawings of the documents that there are."""
    drawn = []
    if check is not None and (matrix := html.matrix(check)):
        style = files("framegauge.report.check").joinpath("matrix.css").read_text(encoding="utf-8")
        drawn.append(Drawing("paths", f"Which paths carry {check['target_mtu']} bytes", matrix, style))
    if summary is not None and (picture := charts.leading(summary)) is not None:
        drawn.append(Drawing("effect", "What it brings", figure(picture)))
    return drawn
