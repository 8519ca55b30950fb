"""Arguments and output of `framegauge apps`; no logic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from framegauge.cli import output
from framegauge.cli.arguments import Verb, add_verb, verb_parser

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "list, fetch and remove applications that workloads need and distributions lack"
_MORE = """\
An application is fetched by your own Maven (`mvn`), with its settings and mirrors, into
$XDG_CACHE_HOME/framegauge/apps (~/.cache/framegauge/apps). Version and SHA-256 of every file are fixed; an application
is there whole, or not at all. It is run by your own Java.

examples:
  framegauge apps                           what there is, with sizes and licences
  framegauge apps --json
  framegauge apps fetch hadoop              for the workload mapreduce; half a minute, 96 MB
  framegauge apps remove hadoop

exit codes: 0 done, 2 bad input, or no mvn or java, 1 it could not be fetched
"""


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("apps", SUMMARY, _MORE)
    verb.add_argument("--json", action="store_true", help="print the list as JSON, with every file")
    verbs = verb.add_subparsers(dest="verb", metavar="VERB", parser_class=Verb)
    for name, text in (("fetch", "fetch an application"), ("remove", "remove an application")):
        add_verb(verbs, name, text).add_argument("app", metavar="NAME", help="as listed by framegauge apps")
    return verb


def run(words: Sequence[str]) -> None:
    """Print the list, fetch or remove."""
    options = parser().parse_args(words)
    from framegauge.apps import store
    from framegauge.apps.catalogue import APPS

    if options.verb == "fetch":
        app = store.named(options.app)
        output.show(f"{app.full_name} is in {store.fetch(app, output.say)}")
    elif options.verb == "remove":
        app = store.named(options.app)
        output.show(f"{app.full_name} was removed" if store.remove(app) else f"{app.full_name} is not there")
    elif options.json:
        output.show_json({"apps": [_document(entry) for entry in APPS.values()]}, indent=2)
    else:
        for entry in APPS.values():
            output.show(*_lines(entry))


def _document(app: Any) -> dict[str, Any]:
    from framegauge.apps import store

    return {
        "name": app.name, "version": app.version, "needed_for": app.needed_for, "installed": store.installed(app),
        "folder": str(store.folder(app)), "size_bytes": app.size_bytes, "licences": app.licences,
        "files": [
            {
                "name": file.name, "coordinates": file.coordinates, "size_bytes": file.size_bytes,
                "sha256": file.sha256, "licence": file.licence,
            }
            for file in app.files
        ],
    }  # fmt: skip


def _lines(app: Any) -> list[str]:
    from framegauge.apps import store
    from framegauge.quantities import print_bytes

    there = f"in {store.folder(app)}" if store.installed(app) else f"not there: framegauge apps fetch {app.name}"
    return [
        f"{app.name} {app.version} (for {app.needed_for}): {there}",
        f"  {len(app.files)} files, {print_bytes(app.size_bytes)}",
        "  licences: " + ", ".join(f"{licence} ({count})" for licence, count in app.licences.items()),
    ]
