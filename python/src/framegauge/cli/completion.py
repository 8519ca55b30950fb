"""`framegauge completion`: a script that completes verbs, options and files in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence

from framegauge.cli import output
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.shipped import examples, pages

__all__ = ["SUMMARY", "parser", "run", "script"]

SUMMARY = "print completion for bash, zsh, fish or tcsh"
SHELLS = ("bash", "zsh", "fish", "tcsh")
_MORE = """\
The script names the verbs and options of this version: make it again after an update.

examples:
  eval "$(framegauge completion bash)"      in ~/.bashrc
  framegauge completion bash > ~/.local/share/bash-completion/completions/framegauge
  framegauge completion zsh > ~/.zfunc/_framegauge        with ~/.zfunc in fpath, before compinit
  framegauge completion fish > ~/.config/fish/completions/framegauge.fish
  framegauge completion tcsh > ~/.framegauge.tcsh         and `source ~/.framegauge.tcsh` in ~/.tcshrc
"""
# Where the words of an argument come from follows from how its help names it.
FILES, FOLDERS = ("FILE",), ("DIR",)


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("completion", SUMMARY, _MORE)
    verb.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")
    return verb


def run(words: Sequence[str]) -> None:
    """Print the script."""
    output.exact(script(parser().parse_args(words).shell))


def script(shell: str) -> str:
    """The completion of every verb."""
    import shtab

    from framegauge.cli import main

    main_parser = main.parser(whole=True)
    for prog, action in _actions(main_parser):
        if action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif offered := _NAMES.get((prog, action.dest)):
            action.choices = offered()
    return str(shtab.complete(main_parser, shell))


def _presets() -> list[str]:
    from framegauge.study import file as study_file

    return study_file.presets()


# By verb and argument, the names that there are.
_NAMES: Mapping[tuple[str, str], Callable[[], list[str]]] = {
    ("framegauge study", "preset"): _presets,
    ("framegauge plan", "preset"): _presets,
    ("framegauge simulate", "preset"): examples.simulations,
    ("framegauge examples", "names"): examples.names,
    ("framegauge docs", "topic"): lambda: [each.name for each in pages.topics()],
}


def _actions(verb: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Every argument of a parser, and of the verbs below it, each with its verb."""
    for action in verb._actions:
        yield verb.prog, action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
