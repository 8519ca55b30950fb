"""What was found as one HTML page that needs no network: the answer, the verdicts, and each metric's course.

Everything that comes from outside is escaped; the page may load nothing and run nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from framegauge import __version__
from framegauge.plots import draw, rows
from framegauge.plots.course import Line, Moment, course
from framegauge.report.page.markup import items, section, slug, style, table, text
from framegauge.summary.units import figure
from framegauge.watch import contrast, document as documents, terminal
from framegauge.watch.run import Seen, Watched

__all__ = ["page"]

_SOURCES = ("measured by Prometheus", "sampled by agents")
_LOOKS = {"go_on": ("better", "✓"), "stop": ("worse", "✗"), "cannot_say": ("undecided", "?")}
_CLASSES = {"better": "v better", "worse": "v worse", "undecided": "v undecided", "not_judged": "v undecided"}
# From which largest value on, and what the values are divided by.
_UNITS = (
    (1e9, 1e9, "·10⁹"),
    (1e6, 1e6, "·10⁶"),
    (1e3, 1e3, "·10³"),
    (0.4, 1.0, ""),
    (4e-4, 1e-3, "·10⁻³"),
    (0, 1e-6, "·10⁻⁶"),
)
_ENDS: Sequence[Callable[[contrast.Course], Sequence[float | None]]] = (lambda side: side.low, lambda side: side.high)


def page(found: Watched) -> str:
    """The whole page."""
    document = documents.document(found)
    look, sign = _LOOKS[document["gate"]]
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return "".join([
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        f"<title>{text(document['question'])} {text(document['answer'])}</title>\n",
        f"<style>\n{style()}</style>\n</head>\n<body>\n",
        '<a class="skip" href="#main">Skip to the answer</a>\n<header>\n',
        f'<p class="soft brand">framegauge watch · {_SOURCES[document["prometheus"] is None]}</p>\n</header>\n',
        f'<main id="main" tabindex="-1">\n<h1>{text(document["question"])}</h1>\n',
        f'<p class="answer {look}"><span class="sign" aria-hidden="true">{sign}</span>',
        f"<span>{text(document['answer'])}</span></p>\n",
        items(_compared(document)),
        section("verdicts", "Verdicts", _verdicts(document["metrics"])),
        section("courses", "Courses", _courses(found, document["metrics"])),
        section("queries", "Queries", _queries(document)),
        f'</main>\n<footer class="soft"><p>framegauge {text(__version__)}, result schema {document["schema"]}. ',
        "The effect is a difference in differences: what changed on the switched hosts, less what changed on the ",
        "others in the same time.</p></footer>\n</body>\n</html>\n",
    ])  # fmt: skip


def _compared(document: Mapping[str, Any]) -> list[str]:
    after = document["after"]
    return [
        f"Switched at {document['changed_at']}: {', '.join(document['switched_hosts'])}.",
        f"Beside: {', '.join(document['control_hosts'])}.",
        f"Before: {document['before'][0]} to {document['before'][1]}. "
        + (f"After: {after[0]} to {after[1]}, {document['share_of_after']:.0%} of what was asked." if after else ""),
    ]


def _verdicts(metrics: Sequence[Mapping[str, Any]]) -> str:
    head = ("metric", "verdict", "switched hosts, and others", "effect", "95 %", "why")
    return table("One row per metric", head, [_row(metric) for metric in metrics])


def _row(metric: Mapping[str, Any]) -> list[str | tuple[str, str]]:
    effect = metric["effect"]
    value = interval = ""
    if effect is not None:
        value = "" if effect["estimate"] is None else figure(effect["estimate"])
        low, high = effect["interval"]
        interval = f"{figure(low)} to {'∞' if high is None else figure(high)}"
        value += "" if effect["scale"] == "ratio" else " (difference)"
    name = metric["metric"] if metric["decides"] else f"{metric['metric']} (does not decide)"
    verdict = (metric["verdict"].replace("_", " "), _CLASSES.get(metric["verdict"], "v"))
    why = " ".join([metric["why"], *(f"But: {doubt}." for doubt in metric["doubts"])])
    return [name, verdict, terminal.levels(metric), value, interval, why]


def _courses(watched: Watched, metrics: Sequence[Mapping[str, Any]]) -> str:
    figures = [_figure(seen, watched, metric) for seen, metric in zip(watched.metrics, metrics, strict=True)]
    return f'<div class="grid">\n{"".join(figures)}</div>\n' if any(figures) else ""


def _figure(seen: Seen, watched: Watched, metric: Mapping[str, Any]) -> str:
    """The chart of a metric with the switch marked; empty without values, or where they are below 0."""
    middles, switched, control = contrast.course(seen.sampled, watched.times)
    ends = [[value for side in (switched, control) for value in part(side) if value is not None] for part in _ENDS]
    if len(middles) < 2 or not ends[0] or min(ends[0]) < 0:
        return ""
    per_step = watched.watch.step if metric["kind"] == "count" else 1.0
    most = max(ends[1]) / per_step
    factor, power = next(((scale, name) for least, scale, name in _UNITS if most >= least)) if most else (1.0, "")
    labels = (
        (switched, "switched hosts: mean, lowest to highest", "first", metric["verdict"].replace("_", " ")),
        (control, "not switched", "baseline", ""),
    )
    lines = [
        Line(
            rows.Row("", label, note, role),
            *(_scaled(part, factor * per_step) for part in (side.middle, side.low, side.high)),
        )
        for side, label, role, note in labels
    ]
    first, last = middles[0], middles[-1]
    strange = [point.seconds_after for point in seen.moved if not point.with_the_switch]
    moments = [Moment(-first, "switch")]
    moments += [Moment(min(max(point, first), last) - first, "the difference changed") for point in strange]
    unit = f"{power} {metric['unit']}".strip()
    drawn = draw.svg(course(lines, [point - first for point in middles], moments, unit, "seconds"))
    name, title = f"chart-{slug(metric['metric'])}", metric["metric"].replace("_", " ")
    chart = draw.for_page(drawn, name, title, f"{terminal.levels(metric)}. {metric['why']}")
    return f'<figure id="{name}"><figcaption>{text(title)}</figcaption>\n{chart}</figure>\n'


def _scaled(values: Sequence[float | None], factor: float) -> list[float | None]:
    return [None if value is None else value / factor for value in values]


def _queries(document: Mapping[str, Any]) -> str:
    source = document["prometheus"]
    caption = f"Asked of {source}" if source is not None else f"Sampled into {document['samples']}"
    what = "PromQL" if source is not None else "counters"
    head = ("metric", "kind", "better", "margin", "negligible", what)
    table_rows = [
        [
            metric["metric"], metric["kind"], metric["better"], f"{100 * metric['margin']:.3g} %",
            "" if metric["negligible"] is None else figure(metric["negligible"]), metric["query"],
        ]
        for metric in document["metrics"]
    ]  # fmt: skip
    return table(f"{caption}, one value per {document['step_seconds']:g} s", head, table_rows)
