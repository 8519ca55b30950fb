"""Values at every combination of two factors: a grid with the number in each cell, and a shade of its size.

Shades are of blue and orange, which colour-blind people can tell apart, and every cell has its number with its sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from framegauge.plots.draw import ROLES, TEXT_PIXELS, WIDTH, Specification, finish

__all__ = ["MOST_COLUMNS", "Cell", "heat"]

MOST_COLUMNS = 8
CELL_PIXELS, LABEL_PIXELS, LEGEND_PIXELS = 34, TEXT_PIXELS + 6, 40
DEEPEST = 0.5  # of a shade, so that numbers are read on it
UP, DOWN = "first", "second"
SWATCHES = 5
LONGEST_WORD = 9  # characters that fit into the narrowest cell


@dataclass(frozen=True)
class Cell:
    """A value between -1 and 1 for the shade (None: no value), and the lines of text in the cell."""

    shade: float | None
    lines: Sequence[str]


def heat(
    columns: Sequence[str], levels: Sequence[str], cells: Sequence[Sequence[Cell]], names: tuple[str, str],
    legend: Sequence[str], from_low: bool = False,
) -> Specification:  # fmt: skip
    """The chart: a row of cells for each level, its label above. `names` are those of columns and of rows; `legend` has
    the texts below the ends of the scale and its middle; `from_low`: shades go from 0 to 1 only."""
    heads = [_lines(label, WIDTH / len(columns)) for label in columns]
    head_lines = max(map(len, heads))
    top = LABEL_PIXELS * (1 + head_lines)
    step = LABEL_PIXELS + CELL_PIXELS
    height = top + step * len(levels) + LEGEND_PIXELS
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, height], range=[0, height], nice=False), axis=None)
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, WIDTH], range=[0, WIDTH], nice=False), axis=None)
    width = WIDTH / len(columns)
    words = [(0.0, LABEL_PIXELS / 2, names[0], "bold", "left")]
    for column, lines in enumerate(heads):
        words += [
            (width * (column + 0.5), LABEL_PIXELS * (1.5 + head_lines - len(lines) + number), line, "normal", "center")
            for number, line in enumerate(lines)
        ]
    shades: list[tuple[float, float, float, float, float | None]] = []
    for number, label in enumerate(levels):
        begin = top + step * number
        words.append((0.0, begin + LABEL_PIXELS / 2, f"{names[1]} {label}".strip(), "bold", "left"))
        for column, cell in enumerate(cells[number]):
            shades.append((width * column, width * (column + 1), begin + LABEL_PIXELS, begin + step, cell.shade))
            middle = begin + LABEL_PIXELS + CELL_PIXELS / 2
            for line, text in enumerate(cell.lines):
                position = middle + (line - (len(cell.lines) - 1) / 2) * (TEXT_PIXELS + 2)
                words.append((width * (column + 0.5), position, text, "bold" if line == 0 else "normal", "center"))
    begin = height - LEGEND_PIXELS + 10
    size = WIDTH / SWATCHES
    for number in range(SWATCHES):
        share = number / (SWATCHES - 1)
        shade = share if from_low else 2 * share - 1
        shades.append((size * number, size * (number + 1), begin, begin + 8, shade))
    for position, text, align in zip((0.0, WIDTH / 2, float(WIDTH)), legend, ("left", "center", "right"), strict=True):
        words.append((position, begin + 18, text, "normal", align))
    return finish([*_boxes(shades, x, y), *_texts(words, x, y)], height)


def _lines(label: str, width: float) -> list[str]:
    """A label cut at spaces into lines that fit into a column."""
    most = max(LONGEST_WORD, int(width / (0.55 * TEXT_PIXELS)))
    lines = [""]
    for word in label.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _boxes(
    shades: Sequence[tuple[float, float, float, float, float | None]], x: alt.X, y: alt.Y
) -> Iterator[alt.Chart]:
    for role, sign in ((UP, 1), (DOWN, -1)):
        boxes = [
            {"x": left, "x2": right, "y": top, "y2": low, "depth": DEEPEST * min(1.0, sign * shade)}
            for left, right, top, low, shade in shades
            if shade is not None and sign * shade > 0
        ]
        if boxes:
            drawn = alt.Chart(alt.InlineData(boxes)).mark_rect(fill=ROLES[role], strokeWidth=0)
            depth = alt.FillOpacity("depth:Q", scale=None)
            yield drawn.encode(x=x, x2=alt.X2("x2:Q"), y=y, y2=alt.Y2("y2:Q"), fillOpacity=depth)
    frames = [{"x": left, "x2": right, "y": top, "y2": low} for left, right, top, low, _ in shades]
    drawn = alt.Chart(alt.InlineData(frames)).mark_rect(
        fill=ROLES["page"], fillOpacity=0, stroke=ROLES["line"], strokeWidth=1
    )
    yield drawn.encode(x=x, x2=alt.X2("x2:Q"), y=y, y2=alt.Y2("y2:Q"))


def _texts(words: Sequence[tuple[float, float, str, str, str]], x: alt.X, y: alt.Y) -> Iterator[alt.Chart]:
    for weight, align in dict.fromkeys((weight, align) for *_, weight, align in words):
        texts = [{"x": left, "y": line, "text": text} for left, line, text, *style in words if style == [weight, align]]
        look: Mapping[str, Any] = {"align": align, "fontWeight": weight}
        drawn = alt.Chart(alt.InlineData(texts)).mark_text(baseline="middle", **look)
        yield drawn.encode(x=x, y=y, text=alt.Text("text:N"))
