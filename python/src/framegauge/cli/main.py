"""The table of verbs, exit codes and signals; what a verb does is in its own module."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any, Protocol, cast

from framegauge import temporary
from framegauge.cli import limits, output
from framegauge.cli.arguments import Verb, nearest
from framegauge.cli.interrupts import interruptible
from framegauge.errors import FramegaugeError, Interrupted, MissingRequirement

__all__ = ["VERBS", "main", "parser", "verb"]

# A verb's module has its SUMMARY for the list of all, its `parser()` and `run(words)`. It is imported when it is
# asked for, and imports what is heavy when it runs: `framegauge rack exec` must not wait for statistics and tables.
VERBS = {
    "check": "framegauge.cli.check",
    "study": "framegauge.cli.study",
    "report": "framegauge.cli.report",
    "compare": "framegauge.cli.compare",
    "decide": "framegauge.cli.decide",
    "estimate": "framegauge.cli.estimate",
    "capture": "framegauge.cli.capture",
    "diagnose": "framegauge.cli.diagnose",
    "simulate": "framegauge.cli.simulate",
    "reproduce": "framegauge.cli.reproduce",
    "rollout": "framegauge.cli.rollout",
    "watch": "framegauge.cli.watch",
    "plan": "framegauge.cli.plan",
    "hosts": "framegauge.cli.hosts",
    "rack": "framegauge.cli.rack",
    "wire": "framegauge.cli.wire",
    "requirements": "framegauge.cli.requirements",
    "apps": "framegauge.cli.apps",
    "examples": "framegauge.cli.examples",
    "docs": "framegauge.cli.docs",
    "schema": "framegauge.cli.schema",
    "completion": "framegauge.cli.completion",
}

_EPILOG = """\
examples:
  framegauge decide --rack                  the whole question, on an emulated rack (see framegauge decide --help)
  framegauge check local netns:blue         does every path carry 9000 bytes? (see framegauge check --help)
  framegauge study --preset demo            a verdict on an emulated 1 Gb/s pair, in about two minutes
  framegauge study rack.yaml --out results/rack --seed 7
  framegauge study --resume --out results/rack
  framegauge report results/rack --html rack.html    the same again, as a page (--json, --markdown, --pictures)
  framegauge compare results/before results/after   is it worse now? (see framegauge compare --help)
  framegauge estimate db1 db2               what jumbo frames could bring to them (see framegauge estimate --help)
  framegauge capture db1 db2 --for 30s      the headers of TCP on both, for diagnose (see framegauge capture --help)
  framegauge diagnose slow.pcapng           why is TCP slow here? (see framegauge diagnose --help)
  framegauge simulate rack.yaml --seeds 20  the same in virtual time (see framegauge simulate --help)
  framegauge reproduce --list               published figures, to be run again (see framegauge reproduce --help)
  framegauge rollout plan storage.yaml      raise the MTU of running hosts, safely (see framegauge rollout --help)
  framegauge watch watch.yaml               did the switch do harm? (see framegauge watch --help)
  framegauge plan rack.yaml                 how long, and which effects it could find (see framegauge plan --help)
  framegauge hosts inventory.ini            NICs, MTUs and TCP settings of your own hosts (see framegauge hosts --help)
  framegauge rollout preflight db1 db2      what stands against an MTU of 9000 (see framegauge rollout --help)
  framegauge rack up rack.yaml              the same hosts, for your own hands (see framegauge rack --help)
  framegauge wire --mtu 9000 --encap vxlan  what an overlay takes (see framegauge wire --help)
  framegauge requirements                   what this machine lacks for the emulated rack
  framegauge apps fetch hadoop              an application that a workload needs (see framegauge apps --help)
  framegauge examples pair --copy .         a study file to change (see framegauge examples --help)
  framegauge docs check                     a page of the documentation (see framegauge docs --help)
  framegauge schema > study.schema.json     for your editor; schema summary, check and compare are of what is printed
  framegauge completion bash                completion for your shell (see framegauge completion --help)

A file to write may be -, which is standard output. `framegauge help VERB` is `framegauge VERB --help`.

exit codes: 0 done, 2 bad input, 3 not faithful or nothing judged, 130 interrupted, 1 anything else
"""


class _Module(Protocol):
    """What the module of a verb has."""

    SUMMARY: str

    def parser(self) -> Verb:
        """Its arguments."""
        ...

    def run(self, words: Sequence[str]) -> list[str] | int | None:
        """Run it: the command that this process is to become afterwards, or an exit code, if any."""
        ...


def verb(name: str) -> _Module:
    """The module of a verb."""
    return cast(_Module, importlib.import_module(VERBS[name]))


class _Version(argparse.Action):
    """Prints the version, and that of the agent if one is found; then ends."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from framegauge import __version__
        from framegauge.agents import binary

        output.show(f"framegauge {__version__}", binary.version())
        parser.exit()


def parser(whole: bool = False) -> Verb:
    """The arguments of `framegauge`. `whole`: with those of every verb, for completion and manual pages."""
    top = Verb(
        prog="framegauge",
        description="Should this network run jumbo frames? An answer with evidence.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=_Version, help="print the versions of framegauge and its agent, and exit")
    inner = {f"framegauge {name}": verb(name).parser() for name in VERBS} if whole else {}

    def made(*, prog: str, **_: object) -> Verb:
        return inner.get(prog) or Verb(prog=prog)

    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=cast(type[Verb], made))
    for name in VERBS:
        verbs.add_parser(name, help=verb(name).SUMMARY)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    output.prepare()
    # SIGTERM, and a terminal that goes away, end a study as Ctrl-C does: in order, with what there is.
    with interruptible():
        temporary.sweep()
        then = _guarded(words)
    if isinstance(then, int):
        return then
    if then is not None:
        from framegauge.rack import hand

        hand.become(then)
    return 0


def _guarded(words: list[str]) -> list[str] | int | None:
    """As `_run`; the exit code of an error, which has been printed."""
    try:
        return _run(words)
    except FramegaugeError as error:
        output.say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        output.say("interrupted")
        return Interrupted.exit_code
    except (MemoryError, OSError, RuntimeError) as error:
        line = limits.reached(error)
        if line is None:
            raise
        output.say(line)
        return MissingRequirement.exit_code
    finally:
        output.finish()


_ALSO = ("help", "version")


def _spelt(words: list[str]) -> list[str]:
    """`help`, `help VERB…` and `version`, which other programs have as verbs, as the options that they are here."""
    if words[:1] == ["help"]:
        return [*words[1:], "--help"]
    return ["--version"] if words == ["version"] else words


def _near(word: str) -> str:
    """What a verb that is none may stand for: one below another, such as preflight, a verb, `help` or `version`."""
    word = word.lower()
    below = [f"{name} {word}" for name, subparser in parser(whole=True).verbs().items() if word in subparser.verbs()]
    return nearest(" ".join(below[:1]), below) or nearest(word, VERBS) or nearest(word, _ALSO)


def _run(words: list[str]) -> list[str] | int | None:
    """Run one verb; the command that this process is to become afterwards, or an exit code, if any."""
    words = _spelt(words)
    if words and words[0] in VERBS:
        return verb(words[0]).run(words[1:])
    # Options of framegauge itself, or a mistake: its first word is enough to tell.
    top = parser()
    if not words:
        top.error(f"found no verb, expected one of {', '.join(VERBS)}")
    if words[0] == "version":
        top.error(f"version: found '{words[1]}' behind it, expected nothing")
    if not words[0].startswith("-") and (near := _near(words[0])):
        top.error(f"unknown verb '{words[0]}'{near}")
    top.parse_args(words[:1])
    return None
