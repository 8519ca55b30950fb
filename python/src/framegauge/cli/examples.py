"""Arguments and output of `framegauge examples`; no logic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framegauge.cli import output
from framegauge.cli.arguments import Verb, nearest, verb_parser
from framegauge.errors import InputError

if TYPE_CHECKING:
    from framegauge.shipped.examples import Example

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "list, print and copy files to begin with: studies, labs of faults, an inventory, a roll-out"
COLUMNS = 120  # of the list where no terminal says how many it has
_MORE = """\
An example is copied with the files that it names. Durations are those of `framegauge plan`, at most; what is simulated
takes seconds.

examples:
  framegauge examples                           all, with how long each takes
  framegauge examples pair                      print one
  framegauge examples pair --copy .             to change it, then: framegauge study pair.yaml
  framegauge examples ssh-rack loss-1 --copy .  ssh-rack.yaml, inventory/hosts.yaml and faults/loss-1.yaml
  framegauge examples --copy examples           all, as the documentation names them

exit codes: 0 done, 2 bad input, such as a file that is there already
"""


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("examples", SUMMARY, _MORE)
    verb.add_argument("names", nargs="*", metavar="NAME", help="as listed by framegauge examples")
    verb.add_argument(
        "--copy", type=output.place, metavar="DIR", help="copy them, or all, into this folder; nothing is overwritten"
    )
    verb.add_argument("--json", action="store_true", help="print the list, or what was written, as JSON")
    return verb


def run(words: Sequence[str]) -> None:
    """Print the list or an example, or copy examples."""
    options = parser().parse_args(words)
    output.check_folder("--copy", options.copy)
    from framegauge.shipped import examples

    chosen = [_named(name) for name in options.names] or examples.examples()
    if options.copy is not None:
        written = _copy(chosen, options.copy)
        if options.json:
            output.show_json({"written": [str(path) for path in written]}, indent=2)
        else:
            output.show(*(f"wrote {path}" for path in written))
    elif options.json:
        output.show_json({"examples": [_document(example, bool(options.names)) for example in chosen]}, indent=2)
    elif not options.names:
        _list(chosen)
    elif len(chosen) == 1:
        output.exact(chosen[0].text.rstrip("\n"))
    else:
        raise InputError(f"examples: found {len(chosen)} names, expected one to print, or --copy DIR")


def _named(name: str) -> Example:
    from framegauge.shipped import examples

    example = examples.named(name)
    if example is None:
        words = [word for example in examples.names() for word in dict.fromkeys((example, example.rpartition("/")[2]))]
        expected = nearest(name, words) or ", expected one that `framegauge examples` lists"
        raise InputError(f"examples: found no example '{name}'{expected}")
    return example


def _copy(chosen: Sequence[Example], folder: Path) -> list[Path]:
    """Copies examples with what they name; InputError, before anything is written, where something is there."""
    from framegauge.shipped import places

    files = list(dict.fromkeys(path for example in chosen for path in example.files))
    for path in files:
        if (folder / path).exists():
            raise InputError(f"--copy: found {folder / path}, expected no such file: nothing was copied")
    for path in files:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        output.write("--copy", folder / path, (places.examples() / path).read_bytes(), new=True)
    return [folder / path for path in files]


def _document(example: Example, has_text: bool) -> dict[str, Any]:
    kind, seconds = _kind(example)
    document = {"name": example.name, "about": example.about, "command": f"framegauge {kind}", "seconds": seconds}
    return {**document, "files": list(map(str, example.files)), **({"text": example.text} if has_text else {})}


def _list(chosen: Sequence[Example]) -> None:
    from framegauge.cli.console import console
    from framegauge.experiment.progress import at_most
    from framegauge.report import narrow

    rows = []
    for example in chosen:
        kind, seconds = _kind(example)
        rows.append([example.name, kind, "" if seconds is None else at_most(seconds), example.about])
    titles = ["name", "framegauge …", "at most", "what it is about"]
    output.show(*(line.rstrip() for line in narrow.aligned(titles, rows, console(COLUMNS).width)))


def _kind(example: Example) -> tuple[str, float | None]:
    """The verb that reads an example, and for how many seconds at most its study runs."""
    from framegauge.experiment.planning import total_seconds
    from framegauge.files import yaml as yaml_file
    from framegauge.study import file as study_file

    keys = yaml_file.keys(example.text, example.name)
    if "workloads" in keys:
        study = study_file.load(example.path)
        return "simulate" if study.testbed.capabilities.is_virtual else "study", round(total_seconds(study))
    return (yaml_file.reader(keys) or "framegauge hosts").removeprefix("framegauge "), None
