"""What the documents tell people to type works, and what they link to is there."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.check_lab import Lab
from helpers.other_tools import flent_folder, iperf3_folder
from helpers.sealing import seal
from helpers.support import ROOT, STUDY

from framegauge.cli import (
    check as cli_check,
    decide as cli_decide,
    diagnose as cli_diagnose,
    hosts as cli_hosts,
    live as cli_live,
    main as cli,
    rack as cli_rack,
    rollout as cli_rollout,
)
from framegauge.compare import windows
from framegauge.labs import file as lab_file
from framegauge.rollout import file as rollout_file

CAPTURE = ROOT / "python/tests/recorded/diagnosis/clean-asks-38.pcapng.gz"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "pipe/README.md"])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every line of every `sh` block: its document, and its words without the comment and the file it writes to."""
    for path in DOCUMENTS:
        for language, body in FENCE.findall(path.read_text()):
            if language == "sh":
                for line in body.splitlines():
                    if words := shlex.split(line, comments=True):
                        yield path.name, words[: words.index(">")] if ">" in words else words


COMMANDS = list(commands())


def make_side(folder: Path, seed: int) -> None:
    """A folder to compare, of the kind that its name says; the runs of a study two minutes apart from 10:00 on."""
    rates = [9.3e8 + 1e5 * ((step * 7 + seed) % 10) for step in range(8)]
    if folder.parts[0] == "iperf3":
        iperf3_folder(folder, rates)
    elif folder.parts[0] == "flent":
        flent_folder(folder, rates, [20 + rate / 1e10 for rate in rates])
    else:
        Path("whole.yaml").write_text(STUDY.replace("blocks: 6", "blocks: 9\nstop: blocks"))
        assert cli.main(["study", "whole.yaml", "--out", str(folder), "--seed", str(seed)]) == 0
        lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
        for index, line in enumerate(lines):
            line["began"] = f"2026-11-21T10:{2 * index:02}:00+00:00"
        (folder / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        seal(folder)


def ours() -> list[Any]:
    """Our commands, each once; some ask the agent, and a study over ssh needs the one that it would copy."""
    found = list(map(list, dict.fromkeys(tuple(words) for _, words in COMMANDS if words[0] == "framegauge")))
    asks = [
        words[1] in ("wire", "simulate", "diagnose", "decide")
        or any(word.startswith(("examples/ssh-", "examples/own-")) for word in words)
        for words in found
    ]
    return [
        pytest.param(words, id=" ".join(words), marks=[pytest.mark.agent] if agent else [])
        for words, agent in zip(found, asks, strict=True)
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("words", ours())
def test_a_command_of_ours_does_something(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "bench").symlink_to(ROOT / "bench")
    (tmp_path / "fake.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    arguments = words[1:]
    if arguments[0] == "examples":  # whoever copies them has none yet
        shutil.rmtree("examples")
    if arguments[0] == "requirements":  # needs the agent; the tests of the rack ask it
        with pytest.raises(SystemExit, match="0"):
            cli.main([*arguments, "--help"])
        return
    if "--live" in arguments:  # serves until Ctrl-C; that it is understood
        cli.verb(arguments[0]).parser().parse_args(cli_live.spelt(arguments[1:]))
        return
    if arguments[0] == "rack":  # needs the agent, too; that it is understood, and that its study can be built
        cut = arguments.index("--") if "--" in arguments else len(arguments)
        options = cli_rack.parser().parse_args(arguments[1:cut])
        if options.subverb == "set":
            assert cli_rack.asked(options)
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
    if arguments[0] == "rollout":  # needs the agent and hosts; that it is understood, and that its file is right
        options = cli_rollout.parser().parse_args(arguments[1:])
        if "file" in options:
            rollout_file.load(options.file)
        return
    if arguments[0] == "decide":  # needs the agent and hosts; that it is understood, and that it can be asked
        options = cli_decide.parser().parse_args(arguments[1:])
        if not options.resume and options.inventory is None:
            assert cli.main([*arguments, *([] if options.dry_run else ["--dry-run"])]) == 0
        return
    if arguments[0] == "estimate":  # needs hosts; that it is understood, and that its inventory is there
        assert cli.main([*arguments, "--dry-run"]) == 0
        return
    if arguments[0] == "hosts":  # needs hosts; that it is understood
        cli_hosts.parser().parse_args(arguments[1:])
        return
    if arguments[0] == "watch":  # needs a Prometheus server; that it is understood, and what it would ask
        text = (ROOT / "docs/how-to/watch.md").read_text()
        Path("watch.yaml").write_text(next(body for language, body in FENCE.findall(text) if language == "yaml"))
        assert cli.main([*arguments, *(["--dry-run"] if "watch.yaml" in arguments else [])]) == 0
        return
    if arguments[0] == "diagnose":  # what is really captured does not matter
        for capture in cli_diagnose.parser().parse_args(arguments[1:]).captures:
            capture.parent.mkdir(parents=True, exist_ok=True)
            capture.write_bytes(gzip.decompress(CAPTURE.read_bytes()))
        assert cli.main(arguments) in (0, 1)
        return
    if arguments[0] == "compare":
        for seed, source in enumerate(itertools.takewhile(lambda word: not word.startswith("--"), arguments[1:])):
            folder = Path(windows.split(source)[0])
            if not folder.exists():
                make_side(folder, seed)
    out = next((word for word in arguments if word.startswith("results/")), None)
    if arguments[0] == "simulate" and "--resume" in arguments:
        assert cli.main(["simulate", "examples/simulate.yaml", "--seeds", "2", "--out", str(out)]) == 0
    elif arguments[0] == "report" or "--resume" in arguments:
        assert cli.main(["study", "fake.yaml", "--out", str(out)]) == 0
        Path("check.json").write_text(json.dumps(Lab((2,)).document()))
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


def test_the_guide_names_files_that_are_there() -> None:
    """Paths in CONTRIBUTING.md, from the root or from the Python package; NAME stands for a new file."""
    package = ROOT / "python/src/framegauge"
    named = set(re.findall(r"`([\w./-]+(?:/|\.(?:py|rs|md|json|toml)))`", (ROOT / "CONTRIBUTING.md").read_text()))
    assert len(named) > 50
    beside = {path.name for path in (package / "check/judgement").iterdir()}
    gone = [
        name for name in named
        if "NAME" not in name and name not in (*beside, "summary.json") and not (ROOT / name).exists() and not (package / name).exists()
    ]  # fmt: skip
    assert gone == []
