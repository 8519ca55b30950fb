"""A study whose live page is looked at: its folder as it was after any run, and the server of its page."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from helpers.pages import VARIED

from framegauge import listening
from framegauge.cli import commands
from framegauge.experiment.progress import Event, line
from framegauge.live import server
from framegauge.results.journal import Run, read
from framegauge.study import file as study_file


class Recorded:
    """A study that has ended, its runs one by one, and what the terminal said before each."""

    def __init__(self, folder: Path) -> None:
        study = study_file.parse(VARIED, "study.yaml")
        said: list[Event] = []
        commands.run_study(study, folder, False, said.append, lambda _: None)
        self.folder = folder
        self.runs: Sequence[Run] = read(folder).runs
        self.said = list(dict.fromkeys(line(event) for event in said if event.run is None and event.fraction == 0.0))

    def begun(self, folder: Path, runs: int) -> Path:
        """A folder as it was after so many runs."""
        folder.mkdir()
        for name in ("results.json", "study.yaml", "environment.json"):
            (folder / name).write_bytes((self.folder / name).read_bytes())
        self.grow(folder, runs)
        return folder

    def grow(self, folder: Path, runs: int, torn: str = "") -> None:
        """The journal after so many runs, and the beginning of a line."""
        lines = "".join(json.dumps(asdict(run)) + "\n" for run in self.runs[:runs])
        (folder / "runs.jsonl").write_text(lines + torn)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[socket.socket, str]]:
    """The page of a folder, at a free port of loopback: where it listens, and the token of its address."""
    token, where = server.new_token(), listening.listen((server.LOOPBACK, 0), "--live")
    with server.served(where, token, folder):
        yield where, token
