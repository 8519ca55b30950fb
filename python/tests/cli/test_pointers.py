"""What framegauge points at is there for who has only the wheel: pages and examples by the commands that show them.

Looked at are all words of the program (literals of its sources, from which errors, findings, reports and pages are
made, and the texts that come with it), the help of every verb, every schema, and the examples themselves.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.support import ROOT

from framegauge.cli import main as cli, schema as cli_schema
from framegauge.shipped import examples, pages

PACKAGE = ROOT / "python/src/framegauge"
TEXTS = (".json", ".yaml", ".txt", ".csv", ".css")
# A path of a clone; in an address it follows a slash.
PATH = re.compile(r"(?<![\w/.])(?:docs|examples|pipe|bench)/[\w*-]+")
DOCS = re.compile(r"framegauge docs ([a-z][\w/-]*)")
EXAMPLES = re.compile(r"framegauge examples ((?:[a-z][\w/-]*\s)*[a-z][\w/-]*)(?= --copy|[`\"')\n;,]|$)")
FILE = re.compile(r"framegauge (?:[a-z-]+ )*([\w/-]+\.yaml)")


def literals(text: str) -> Iterator[str]:
    """Strings in a source that are more than its documentation."""
    module = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(module)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def parsers(whole: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and those of the verbs below it."""
    yield whole
    for action in whole._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in dict.fromkeys(action.choices.values()):
                yield from parsers(inner)


def help_of_all() -> dict[str, str]:
    """The help of framegauge and of every verb, unwrapped."""
    texts = {}
    for parser in parsers(cli.parser(whole=True)):
        options = [str(action.help) for action in parser._actions if action.help]
        texts[parser.prog] = "\n".join([str(parser.description), *options, parser.epilog or ""])
    return texts


def schemas() -> list[str]:
    """What `framegauge schema` takes."""
    (action,) = [action for action in cli_schema.parser()._actions if action.dest == "what"]
    return list(map(str, action.choices or ()))


def wrong(text: str) -> list[str]:
    """What a text points at and is not there, or only in a clone."""
    pointers = PATH.findall(text)
    pointers += [name for name in DOCS.findall(text) if pages.named(name) is None]
    named = [name for words in EXAMPLES.findall(text) for name in words.split()]
    return pointers + [name for name in named if examples.named(name) is None]


@pytest.mark.parametrize(
    ("text", "pointers"),
    [
        ("see docs/how-to/check.md", ["docs/how-to"]), ("(examples/pair.yaml)", ["examples/pair"]),
        ("https://prometheus.io/docs/instrumenting", []), ("files in examples/: copied", []),
        ("framegauge docs check", []), ("framegauge docs chekc.", ["chekc"]), ("`framegauge docs`", []),
        ("framegauge examples pair clean --copy .", []), ("framegauge examples pear --copy .", ["pear"]),
        ("`framegauge examples` lists all", []), ("(framegauge examples pear)", ["pear"]),
    ],
)  # fmt: skip
def test_a_wrong_pointer_is_seen(text: str, pointers: list[str]) -> None:
    assert wrong(text) == pointers


def test_no_word_of_the_program_points_into_a_clone() -> None:
    offenders = [
        (str(path.relative_to(PACKAGE)), pointers)
        for path in sorted(PACKAGE.rglob("*"))
        for text in (
            literals(path.read_text()) if path.suffix == ".py" else [path.read_text()] if path.suffix in TEXTS else []
        )
        if (pointers := wrong(text))
    ]
    assert offenders == []


@pytest.mark.parametrize(("prog", "text"), help_of_all().items(), ids=list(help_of_all()))
def test_help_points_at_what_a_wheel_has(prog: str, text: str) -> None:
    assert wrong(text) == []
    # Whose commands take the file of an example, says how to get it.
    used = [name for name in FILE.findall(text) if examples.named(name) is not None and "/" in name]
    assert not used or "framegauge examples " in text, used


@pytest.mark.parametrize("what", schemas())
def test_a_schema_points_at_what_a_wheel_has(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schema", what]) == 0
    assert wrong(capsys.readouterr().out.replace("\\n", " ")) == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.yaml")), ids=lambda path: path.stem)
def test_an_example_points_at_what_a_wheel_has(path: Path) -> None:
    assert wrong(re.sub(r"\n# ", " ", path.read_text())) == []
