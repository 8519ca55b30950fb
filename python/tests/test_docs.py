"""What the documents tell people to type works, and what they link to is there."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT, STUDY

from framegauge import cli, cli_check, cli_rack, lab_file

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "pipe/README.md"])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every line of every `sh` block: its document, and its words without the comment."""
    for path in DOCUMENTS:
        for language, body in FENCE.findall(path.read_text()):
            if language == "sh":
                for line in body.splitlines():
                    if words := shlex.split(line, comments=True):
                        yield path.name, words


COMMANDS = list(commands())


@pytest.mark.parametrize(
    "words", [words for _, words in COMMANDS if words[0] == "framegauge"], ids=lambda words: " ".join(words)
)
def test_a_command_of_ours_does_something(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "fake.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    arguments = words[1:]
    if arguments[0] == "requirements":  # needs the agent; the tests of the rack ask it
        with pytest.raises(SystemExit, match="0"):
            cli.main([*arguments, "--help"])
        return
    if arguments[0] == "rack":  # needs the agent, too; that it is understood, and that its study can be built
        cut = arguments.index("--") if "--" in arguments else len(arguments)
        options = cli_rack.parser().parse_args(arguments[1:cut])
        if options.subverb == "up":
            if lab_file.is_lab(options.file):
                lab_file.load(options.file)
            else:
                assert cli.main(["study", options.file, "--dry-run"]) == 0
        return
    if arguments[0] == "check":  # needs the agent and hosts; that it is understood, and that its testbed is there
        options = cli_check.parser().parse_args(arguments[1:])
        if options.testbed is not None:
            assert (ROOT / options.testbed).exists()
        return
    out = next((word for word in arguments if word.startswith("results/")), None)
    if arguments[0] == "report" or "--resume" in arguments:
        assert cli.main(["study", "fake.yaml", "--out", str(out)]) == 0
    elif arguments[0] == "study" and "--dry-run" not in arguments:
        arguments = [*arguments, "--dry-run"]
    assert cli.main(arguments) == 0


def test_every_other_command_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document, words in COMMANDS:
        if words[0] == "make":
            assert set(words[1:]) <= targets, (document, words)
        else:
            assert words[0] in ("framegauge", "framegauge-agent"), (document, words)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target
