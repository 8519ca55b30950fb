"""Command lines of several verbs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

__all__ = ["Verb", "add_verb"]


class Verb(argparse.ArgumentParser):
    """One verb of several: what it does not know it tells with its own usage, where argparse shows that of all."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse, but nothing is left unknown."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown


def add_verb(
    verbs: argparse._SubParsersAction[Verb], name: str, text: str, more: str = "", aliases: Sequence[str] = ()
) -> Verb:
    """A verb with its line in the list of all, and `more` at the end of its own help."""
    return verbs.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=more,
        aliases=aliases,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
