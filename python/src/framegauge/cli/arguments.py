"""Command lines of verbs, and what is said of one that cannot be read: one line, and how to get help."""

from __future__ import annotations

import argparse
import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from framegauge.printable import printable

__all__ = ["Verb", "add_verb", "nearest", "verb_parser"]

NEGATIVE = re.compile(r"-\.?\d")  # what begins like this is a value, with or without a unit, if it is no option

# What other programs call an option, and ours that mean it, the first that a verb has.
_ELSEWHERE = {
    **dict.fromkeys(("--interval", "--period"), ("--every", "--for")),
    **dict.fromkeys(("--seconds", "--duration", "--time"), ("--for", "--every")),
    **dict.fromkeys(("--inventory", "-i"), ("--hosts",)),
    **dict.fromkeys(("--output", "-o"), ("--out",)),
    **dict.fromkeys(("-V", "-v"), ("--version",)),
}
# What argparse says, in the words that the rest of framegauge has: what was found, and what was expected.
_SAID = {
    re.compile(r"^the following arguments are required: (.*)$"): r"found no \1, expected it",
    re.compile(r"^one of the arguments (.*) is required$"): r"found none of \1, expected one",
    re.compile(r"^argument (\S+): expected one argument$"): r"\1: found nothing behind it, expected a value",
    re.compile(r"^argument (\S+): expected at least one argument$"): r"\1: found nothing behind it, expected a value",
    re.compile(r"^argument (\S+): not allowed with argument (\S+)$"): r"found \1 and \2, expected one of them",
}


class Verb(argparse.ArgumentParser):
    """The arguments of one verb. An unknown option, verb or value is an error that names the nearest one."""

    _words: Sequence[str] = ()

    def __init__(self, *args: Any, **options: Any) -> None:
        # A part of a name is no name: `--seed` would be `--seeds` where that is the only one.
        super().__init__(*args, **{"allow_abbrev": False, **options})
        self._former: dict[str, str] = {}

    def add_former(self, name: str, option: str, read: Callable[[str], str] = str) -> None:
        """An earlier name of an option: it is understood, and --help does not list it. `read` makes of its value one
        that the option takes."""
        action = self._option_string_actions[option]
        self.add_argument(name, dest=action.dest, type=read, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        self._former[name] = option

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse, but nothing is left unknown."""
        self._words = [] if args is None else list(args)
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self._tell_unknown(unknown)
            self.error(f"unexpected argument '{unknown[0]}'")
        return options, unknown

    def _parse_optional(self, arg_string: str) -> Any:
        """As argparse, which takes `-5s` for an option, and `-5`, too, where there is an option `-4`."""
        if NEGATIVE.match(arg_string) and arg_string not in self._option_string_actions:
            return None
        return super()._parse_optional(arg_string)

    def verbs(self) -> Mapping[str, Verb]:
        """The verbs below this one."""
        below = next((action for action in self._actions if isinstance(action, argparse._SubParsersAction)), None)
        return {} if below is None else below.choices

    def error(self, message: str) -> NoReturn:
        """One line, and how to get help. A misspelt option comes first, as what else is wrong may follow from it."""
        self._tell_unknown(itertools.takewhile(lambda word: word != "--", self._words))
        for pattern, ours in _SAID.items():
            message = pattern.sub(ours, message)
        if message == "found no VERB, expected it":
            message = f"found no VERB, expected one of {', '.join(self.verbs())}"
        self._end(message)

    def _end(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {printable(message)}\nhelp: {self.prog} --help\n")

    def _tell_unknown(self, words: Iterable[str]) -> None:
        """Ends with the first of these that looks like an option and is none."""
        options = list(self._option_string_actions)
        for word in words:
            option = word.partition("=")[0]
            is_short = option[:2] in options and not option.startswith("--")  # such as -w5
            is_value = option == "-" or NEGATIVE.match(option)
            if option.startswith("-") and not is_value and option not in options and not is_short:
                instead = next((candidate for candidate in _ELSEWHERE.get(option, ()) if candidate in options), None)
                near = nearest(option, options, self._former) if instead is None else _meant(instead)
                self._end(f"unknown option '{option}'{near}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Of a number that is none, what was expected."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            if action.type is not int:
                raise
            raise argparse.ArgumentError(action, f'found "{arg_string}", expected a whole number') from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Of values that are one of a few."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        noun = "verb" if isinstance(action, argparse._SubParsersAction) else "value"
        near = nearest(str(value), choices) or nearest(str(value).lower(), choices)
        text = f"unknown {noun} '{value}'{near}"
        if not near:
            text += f", expected one of {', '.join(choices)}"
        raise argparse.ArgumentError(None if noun == "verb" else action, text)


def nearest(word: str, known: Iterable[str], instead: Mapping[str, str] = MappingProxyType({})) -> str:
    """`: did you mean 'study'?`, or nothing where no word is near; `instead`: of some words, those to use."""
    names = {option.lstrip("-"): option for option in known}  # dashes are alike in all options, and make none nearer
    begun = sorted((option for option in names.values() if option.startswith(word)), key=len)
    matches = begun or [names[name] for name in difflib.get_close_matches(word.lstrip("-"), names, 1)]
    return _meant(instead.get(matches[0], matches[0])) if matches else ""


def _meant(word: str) -> str:
    return f": did you mean '{word}'?"


def verb_parser(name: str, summary: str, more: str, description: str | None = None) -> Verb:
    """The parser of `framegauge NAME`, with `more` (examples, exit codes) at the end of its help."""
    return Verb(
        prog=f"framegauge {name}",
        description=description or _sentence(summary),
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_verb(
    verbs: argparse._SubParsersAction[Verb], name: str, text: str, more: str = "", aliases: Sequence[str] = ()
) -> Verb:
    """A verb below another, with its line in the list of all, and `more` at the end of its own help."""
    return verbs.add_parser(
        name,
        help=text,
        description=_sentence(text),
        epilog=more,
        aliases=aliases,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
