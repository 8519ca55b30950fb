"""The rendering of charts: SVG for the page, with colours that follow its theme, and SVG or PNG files.

Every colour of a chart is one of ROLES, by its hex value on white paper. In the page these values become CSS variables,
so that one drawing serves light and dark themes. Drawings refer to no font files, scripts or network addresses.
"""

from __future__ import annotations

import os
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import altair as alt
import vl_convert
from altair.utils import schemapi

from framegauge.errors import FramegaugeError
from framegauge.printable import one_line

__all__ = [
    "FONT", "ROLES", "TEXT_PIXELS", "WIDTH", "Specification", "finish", "for_page", "png", "standalone", "svg", "warm",
]  # fmt: skip

WIDTH = 340  # pixels of the plot; with its margins it fits a phone almost without scaling
TEXT_PIXELS = 11
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
PNG_SCALE = 3.0
# Each value is unique, because it identifies the role of a colour in a drawing.
ROLES: Mapping[str, str] = {
    "page": "#ffffff",
    "text": "#1a1d21",
    "soft": "#59636f",
    "line": "#d5dae1",
    "band": "#dfe7f0",
    "baseline": "#66717e",
    "control": "#8a6410",
    "first": "#0b57b0",
    "second": "#b5400f",
    "third": "#00714f",
    "fourth": "#7d3c98",
    "better": "#14602b",
    "worse": "#9b1c1a",
    "undecided": "#6b4500",
}
_SVG = "http://www.w3.org/2000/svg"
_KEPT = {
    "d", "dx", "dy", "fill", "fill-opacity", "font-family", "font-size", "font-weight", "height", "opacity", "stroke",
    "stroke-dasharray", "stroke-opacity", "stroke-width", "stroke-miterlimit", "text-anchor", "transform", "viewBox",
    "width", "x", "x1", "x2", "y", "y1", "y2",
}  # fmt: skip
Specification = dict[str, Any]  # a chart in the terms of Vega-Lite
Drawn = TypeVar("Drawn", str, bytes)
_NOTHING = {"", "M0,0h0v0h0Z"}
ElementTree.register_namespace("", _SVG)
# Altair would check every part of a chart against its schema, in a third of the time of a page. Tests do.
schemapi.disable_debug_mode()


def finish(layers: Sequence[alt.Chart], height: float) -> Specification:
    """Layers, the first at the bottom, as one chart in the common style: no frame, light axes, text in TEXT_PIXELS."""
    axis = {
        "labelColor": ROLES["soft"], "titleColor": ROLES["text"], "gridColor": ROLES["line"],
        "domainColor": ROLES["soft"], "tickColor": ROLES["soft"], "labelFontSize": TEXT_PIXELS,
        "titleFontSize": TEXT_PIXELS, "titleFontWeight": "normal", "labelFont": FONT, "titleFont": FONT,
    }  # fmt: skip
    text = {"font": FONT, "fontSize": TEXT_PIXELS, "color": ROLES["text"]}
    # Altair's own layers copy all data several times, in a third of the time of a page.
    context: dict[str, Any] = {"datasets": {}, "top_level": False}
    drawn = [layer.to_dict(validate=False, context=context) for layer in layers]
    return {
        "$schema": alt.SCHEMA_URL,
        "layer": drawn,
        "datasets": context["datasets"],
        "width": WIDTH,
        "height": height,
        "background": ROLES["page"],
        "padding": 6,
        "config": {"axis": axis, "view": {"stroke": None}, "text": text},
    }


def svg(chart: Specification) -> str:
    """The chart as rendered by vl-convert, with the colours of white paper; RuntimeError where no threads are to be had
    for it."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    # Altair may use a newer version than the renderer knows; then its newest version is used.
    known = version if version in vl_convert.get_vegalite_versions() else None
    # The data are part of the chart: an address in it would raise an error, and not cause a request.
    return _rendered(lambda: vl_convert.vegalite_to_svg(chart, vl_version=known, allowed_base_urls=[]))


def _rendered(render: Callable[[], Drawn]) -> Drawn:
    """What the renderer draws. Its panics are no Exception of Python's: here they become one."""
    _try_threads()
    try:
        return render()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise FramegaugeError(f"the renderer of charts failed: {one_line(str(error), 200)}") from None


@cache
def _try_threads() -> None:
    """RuntimeError, as Python raises it, where no threads are to be had. The renderer would panic, with lines of its
    own on standard error, and draw nothing more in this process; so this comes before its first chart."""
    end = threading.Event()
    begun = []
    try:
        # Its own, and those of V8 and Tokio: two per CPU where they were counted.
        for _ in range(2 * (os.cpu_count() or 1) + 1):
            thread = threading.Thread(target=end.wait)
            thread.start()
            begun.append(thread)
    finally:
        end.set()
        for thread in begun:
            thread.join()


def warm() -> None:
    """Draws a point, for whoever has time now: the renderer takes a second to begin, and keeps what it has begun."""
    svg(finish([alt.Chart(alt.Data(values=[{}])).mark_point()], 1.0))


def for_page(drawn: str, name: str, title: str, text: str) -> str:
    """A drawing for the page, in the colours of its theme: an image with a title and an alternative text."""
    root = _slim(drawn)
    colours = {value: f"var(--{role})" for role, value in ROLES.items()}
    for element in root.iter():
        for key in ("fill", "stroke"):
            value = element.get(key)
            if value is not None and value.lower() in colours:
                element.set(key, colours[value.lower()])
        element.attrib.pop("font-family", None)
    for background in [child for child in root if child.tag == f"{{{_SVG}}}rect"]:
        root.remove(background)
    _name(root, name, title, text)
    root.set("class", "chart")
    # The style sheet sets the size; these attributes reserve the space until it is loaded.
    return ElementTree.tostring(root, encoding="unicode")


def standalone(drawn: str, name: str, title: str, text: str) -> str:
    """A drawing as a separate file, on white."""
    root = _slim(drawn)
    _name(root, name, title, text)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def png(drawn: str) -> bytes:
    """A drawing as a PNG of three times its size in pixels."""
    return _rendered(lambda: vl_convert.svg_to_png(drawn, scale=PNG_SCALE))


def _slim(drawn: str) -> Any:
    """The tree without the parts that only scripts and inspectors need."""
    root = ElementTree.fromstring(drawn)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}path" and child.get("d", "") in _NOTHING:
                parent.remove(child)
    for _ in range(4):  # removes nested empty groups
        for parent in list(root.iter()):
            for child in list(parent):
                if child.tag == f"{{{_SVG}}}g" and len(child) == 0:
                    parent.remove(child)
    for element in root.iter():
        for key in [key for key in element.attrib if key not in _KEPT]:
            del element.attrib[key]
        if element.get("transform") == "translate(0,0)":
            del element.attrib["transform"]
    return root


def _name(root: Any, name: str, title: str, text: str) -> None:
    """Adds an accessible name and description, as the first children."""
    for place, (tag, content) in enumerate((("title", title), ("desc", text))):
        child = ElementTree.Element(f"{{{_SVG}}}{tag}", {"id": f"{name}-{tag}"})
        child.text = content
        root.insert(place, child)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title")
    root.set("aria-describedby", f"{name}-desc")
