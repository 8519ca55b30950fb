"""A study as one HTML page that needs no network: the answer first, then everything that it is based on.

Everything that comes from outside is escaped. The page's policy allows no loading, and no scripts but the two that the
page carries, named by their hashes. Whatever a colour shows is also shown by words and shapes.
"""

from __future__ import annotations

import re

from framegauge import __version__
from framegauge.report import evidence
from framegauge.report.page.markup import answered, asset, hash_of, items, style, text
from framegauge.report.page.sections import SECTIONS, courses_json
from framegauge.report.pictures.material import Material
from framegauge.summary import beside
from framegauge.summary.intervals import CORRECTED
from framegauge.summary.sentence import Number

__all__ = ["page"]

_HEADING = re.compile(r'<h2 id="([a-z]+)" tabindex="-1">([^<]*)</h2>')


def page(material: Material) -> str:
    """The whole page."""
    sections = "".join(part(material) for part in SECTIONS)
    scripts = [asset("uplot.min.js"), asset("study_page.js")] if material.courses else []
    hashes = " ".join(map(hash_of, scripts)) or "'none'"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}; base-uri 'none'; form-action 'none'"
    looks = style() + asset("decision.css") + (asset("uplot.min.css") if scripts else "")
    question = text(material.summary["question"])
    data = f'<script type="application/json" id="courses-data">{courses_json(material)}</script>\n' if scripts else ""
    return "".join([
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        f"<title>{question} {text(material.answer.text)}</title>\n",
        f"<style>\n{looks}</style>\n</head>\n<body>\n",
        '<a class="skip" href="#main">Skip to the answer</a>\n<header>\n',
        f'<p class="soft brand">framegauge study · {text(material.saved.plan["scope"])}</p>\n</header>\n',
        f'<main id="main" tabindex="-1">\n<h1>{question}</h1>\n',
        _answer(material),
        f'<nav aria-label="Sections"><ul>{_contents(sections)}</ul></nav>\n',
        sections,
        f'</main>\n<footer class="soft"><p>framegauge {text(__version__)}, result schema '
        f"{text(material.summary['schema'])}. Rates and sizes are decimal. MTUs are readings unless stated otherwise; "
        "goodput and times are measurements.</p></footer>\n",
        f"<!-- This page carries uPlot 1.6.32:\n{asset('uplot.LICENSE')}-->\n" if scripts else "",
        data,
        *(f"<script>{script}</script>\n" for script in scripts),
        "</body>\n</html>\n",
    ])  # fmt: skip


def _contents(sections: str) -> str:
    return "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in _HEADING.findall(sections))


def _answer(material: Material) -> str:
    numbers = "".join(map(_number, material.numbers))
    notes = "".join(f'<p class="beside-answer">{text(line)}</p>\n' for line in beside.lines(material.summary))
    return (
        answered(material.answer)
        + notes
        + (f'<dl class="numbers">{numbers}</dl>\n' if numbers else "")
        + '<div class="beside"><section aria-labelledby="sure"><h2 id="sure">How sure is that?</h2>\n'
        + items(evidence.how_sure(material.summary))
        + '</section>\n<section aria-labelledby="limits"><h2 id="limits">What it does not say</h2>\n'
        + items(evidence.limits(material.summary))
        + "</section></div>\n"
    )


def _number(number: Number) -> str:
    return (
        f'<div><dt>{text(number.label)}</dt><dd><span class="big">{text(number.change)}</span> '
        f'<span class="interval">{text(number.interval)}, {text(CORRECTED)}</span> '
        f'<span class="soft">{text(number.values)}</span></dd></div>\n'
    )
