"""Charts of the tests: they draw the same invented studies again and again, which was a fifth of their time, so each chart is
rendered once per process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import vl_convert

_render = vl_convert.vegalite_to_svg
_drawn: dict[str, str] = {}


def _once(chart: dict[str, Any], **options: Any) -> str:
    """What the renderer makes of the same chart with the same options."""
    key = json.dumps([chart, options])
    if key not in _drawn:
        _drawn[key] = _render(chart, **options)
    return _drawn[key]


def once() -> None:
    """From now on, each chart is rendered once."""
    vl_convert.vegalite_to_svg = _once


@contextmanager
def anew() -> Iterator[None]:
    """Within it every chart is rendered, for those who ask whether it comes out the same."""
    vl_convert.vegalite_to_svg = _render
    try:
        yield
    finally:
        once()
