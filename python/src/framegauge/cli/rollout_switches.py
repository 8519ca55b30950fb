"""Arguments and output of `framegauge rollout switches`; no logic."""

from __future__ import annotations

import argparse

from framegauge.cli import output, values
from framegauge.cli.arguments import Verb, add_verb
from framegauge.errors import InputError

__all__ = ["SUMMARY", "arguments", "run"]

SUMMARY = "print what to type on switches, with a commit that undoes itself"
_MORE = """\
Nothing is sent to a switch. The first part is for before the hosts are changed, the second for when full-size packets
have passed everywhere (framegauge rollout status FILE --prove), the third takes it back. Switches come first when MTUs
grow, and last when they shrink.

What a platform calls its MTU differs: Junos counts the Ethernet header, so 9000 becomes 9014, and more with VLAN tags.
Where a port can take more than is asked for, more does no harm: many networks set 9216 everywhere.

examples:
  framegauge rollout switches --platform junos --port xe-0/0/1 --port xe-0/0/2 --mtu 9000
  framegauge rollout switches --platform eos --port Ethernet1 --for 30min --json
  framegauge rollout switches --platform nvue --port swp1-32 --mtu 9000 --old-mtu 1500
"""
SIZES = (68, 65_535)
SECONDS = (60, 36_000)


def arguments(verbs: argparse._SubParsersAction[Verb]) -> None:
    """Adds the parser."""
    from framegauge.rollout import switches

    verb = add_verb(verbs, "switches", SUMMARY, _MORE)
    verb.add_argument("--platform", required=True, choices=tuple(switches.PLATFORMS), help="the kind of switch")
    verb.add_argument("--port", action="append", default=[], required=True, metavar="PORT", help="may be repeated")
    verb.add_argument("--mtu", default="9000", metavar="BYTES", help="of the hosts' packets (9000)")
    verb.add_argument("--old-mtu", default="1500", metavar="BYTES", help="what they are now, to go back to (1500)")
    verb.add_argument(
        "--for", dest="seconds", default="10 min", metavar="TIME", help="how long until it goes back by itself (10 min)"
    )
    verb.add_former("--minutes", "--for", values.in_minutes)
    verb.add_argument("--tags", default="0", metavar="N", help="VLAN tags of the frames, where they count (0)")
    verb.add_argument("--json", action="store_true", help="print it as JSON")


def run(options: argparse.Namespace) -> int:
    """Print the text."""
    from framegauge.rollout import switches

    minutes = _minutes(options.seconds)
    config = switches.text(
        options.platform,
        options.port,
        values.mtu("--mtu", options.mtu, *SIZES),
        values.mtu("--old-mtu", options.old_mtu, *SIZES),
        minutes,
        values.number("--tags", options.tags, 0, 2),
    )
    if options.json:
        output.show_json(config.as_document(), indent=1)
        return 0
    goes = f"goes back in {minutes} minutes by itself" if config.platform.by_itself else "does not go back itself"
    for title, lines in (
        (f"{config.platform.title}: before the hosts are changed ({goes})", config.prepare),
        ("only when full-size packets have passed everywhere", config.confirm),
        ("to take it back", config.undo),
        ("to know", config.platform.know),
    ):
        output.show(f"{title}:", *(f"    {line}" for line in lines), "")
    return 0


def _minutes(text: str) -> int:
    """Switches count in minutes."""
    minutes = values.seconds("--for", text, *SECONDS) / 60
    if not minutes.is_integer():
        raise InputError(f'--for: found "{text}", expected whole minutes')
    return int(minutes)
