"""Arguments and output of `framegauge schema`; no logic."""

from __future__ import annotations

from collections.abc import Sequence

from framegauge.cli import output
from framegauge.cli.arguments import Verb, verb_parser

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "print the JSON Schema of a study file, of a capture's document, or of what --json prints"
_MORE = """\
examples:
  framegauge schema > study.schema.json
  framegauge schema summary
"""


def parser() -> Verb:
    """The arguments."""
    whole = verb_parser("schema", SUMMARY, _MORE)
    whole.add_argument(
        "what", nargs="?", choices=("study", "summary", "decision", "check", "compare", "capture", "diagnose"),
        default="study",
        help="a study file, a capture's HOST.json, or what study and report, report --decision, check, compare or "
        "diagnose print with --json (study)",
    )  # fmt: skip
    return whole


def run(words: Sequence[str]) -> None:
    """Print the schema."""
    options = parser().parse_args(words)
    from framegauge.capture import schema as captures
    from framegauge.check.judgement import schema
    from framegauge.diagnose import run as diagnosis
    from framegauge.study import file as study_file
    from framegauge.summary.schema import comparison_schema, decision_schema, summary_schema

    makers = {
        "study": study_file.json_schema,
        "summary": summary_schema,
        "decision": decision_schema,
        "check": schema.json_schema,
        "compare": comparison_schema,
        "capture": captures.json_schema,
        "diagnose": diagnosis.schema,
    }
    output.show_json(makers[options.what](), indent=2)
