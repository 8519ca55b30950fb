"""Arguments and output of `framegauge schema`; no logic."""

from __future__ import annotations

from collections.abc import Sequence

from framegauge.cli import output
from framegauge.cli.arguments import Verb, verb_parser

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "print the JSON Schema of a study or watch file, of a capture's document, or of what --json prints"
_MORE = """\
examples:
  framegauge schema > study.schema.json
  framegauge schema summary
"""
WHAT = (
    "study", "summary", "decision", "decide", "check", "compare", "compare-several", "capture", "diagnose", "estimate",
    "rollout", "rollout-plan", "rollout-status", "rollout-preflight", "rollout-ticket", "watch", "watched",
    "plan", "wire", "hosts", "rack", "requirements", "cpu-model",
)  # fmt: skip


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("schema", SUMMARY, _MORE)
    verb.add_argument(
        "what", nargs="?", default="study", choices=WHAT, metavar="WHAT",
        help=f"{', '.join(WHAT)}: a study file (the default), a roll-out's or a watch file, a capture's HOST.json, or "
        "what study and report, report --decision, decide, check, compare of one NEW or of several, diagnose, "
        "estimate, rollout plan, status, preflight or ticket, watch (watched), plan, wire, hosts, rack up or list, "
        "requirements or estimate --model (cpu-model) print with --json",
    )  # fmt: skip
    return verb


def run(words: Sequence[str]) -> None:
    """Print the schema."""
    options = parser().parse_args(words)
    from framegauge.capture import schema as captures
    from framegauge.check.judgement import schema
    from framegauge.cli import printed
    from framegauge.decide import page as decide_page
    from framegauge.diagnose import run as diagnosis
    from framegauge.estimate import schema as estimates
    from framegauge.rollout import file as rollout_file, schema as rollout, ticket_schema
    from framegauge.rollout.preflight import schema as preflight
    from framegauge.study import file as study_file
    from framegauge.summary.schema import comparison_schema, decision_schema, several_schema, summary_schema
    from framegauge.watch import document as watched, model as watch_file

    makers = {
        "study": study_file.json_schema,
        "summary": summary_schema,
        "decision": decision_schema,
        "decide": decide_page.schema,
        "check": schema.json_schema,
        "compare": comparison_schema,
        "compare-several": several_schema,
        "capture": captures.json_schema,
        "diagnose": diagnosis.schema,
        "estimate": estimates.json_schema,
        "rollout-preflight": preflight.json_schema,
        "rollout-ticket": ticket_schema.json_schema,
        "rollout": rollout_file.json_schema,
        "rollout-plan": rollout.plan_schema,
        "rollout-status": rollout.status_schema,
        "watch": watch_file.json_schema,
        "watched": watched.json_schema,
        "plan": printed.plan,
        "wire": printed.wire,
        "hosts": printed.hosts,
        "rack": printed.rack,
        "requirements": printed.requirements,
        "cpu-model": printed.cpu_model,
    }
    output.show_json(makers[options.what](), indent=2)
