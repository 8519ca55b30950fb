"""Tools that say what is wrong in a capture, each with an adapter from its output to answers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from bench.corpus.answers import Answer
from bench.corpus.tools import framegauge, tcptrace, tshark, zeek


class Tool(Protocol):
    """A module of this folder: `MAPPING` says how the tool's words become causes, as favourably as we knew."""

    TITLE: str
    NEEDS: str
    MAPPING: str

    def output(self, capture: Path) -> str:
        """What the tool prints of a capture."""

    def answers(self, text: str, capture: str) -> Iterator[Answer]:
        """What this says."""


class ToolMissing(Exception):
    """A tool that is not installed, or fails, in one line."""


TOOLS: dict[str, Tool] = {"framegauge": framegauge, "tcptrace": tcptrace, "tshark": tshark, "zeek": zeek}


def is_there(tool: Tool) -> bool:
    """Ours is built with the project."""
    return tool is framegauge or shutil.which(tool.NEEDS) is not None


def ask(tool: Tool, folder: Path, captures: Sequence[str]) -> Iterator[Answer]:
    """The tool's answers on these captures of a corpus."""
    if not is_there(tool):
        raise ToolMissing(f"{tool.NEEDS} was not found: apt-get install {tool.NEEDS}, or take it from its project")
    for capture in captures:
        try:
            text = tool.output(folder / capture)
        except subprocess.CalledProcessError as failed:
            raise ToolMissing(f"{capture}: {tool.NEEDS} ended with {failed.returncode}, expected 0") from None
        yield from tool.answers(text, capture)
