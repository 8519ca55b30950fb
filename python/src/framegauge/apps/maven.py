"""Fetches files by the user's own Maven: its settings, mirrors and local repository are the user's."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from shutil import which
from xml.sax.saxutils import escape

from framegauge.errors import FramegaugeError, InputError
from framegauge.printable import one_line

__all__ = ["DEPENDENCY_PLUGIN", "copy", "pom"]

DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8"
# Maven colours its words, also in a pipe if it was told to.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ERROR = re.compile(r"\[ERROR\]\s*(.+)")
_JAR = re.compile(r"Download(?:ed|ing) from \S+: \S+/([^/\s]+\.jar)")
STOP_SECONDS = 5.0


def pom(coordinates: Iterable[str], alone: bool = True) -> str:
    """A project that depends on these; `alone`: and on nothing that these depend on."""
    without = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    tags = ("groupId", "artifactId", "version", "classifier")
    dependencies = "\n".join(
        "<dependency>"
        + "".join(f"<{tag}>{escape(word)}</{tag}>" for tag, word in zip(tags, artifact.split(":"), strict=False))
        + (without if alone else "")
        + "</dependency>"
        for artifact in coordinates
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>\n'
        "<groupId>framegauge</groupId><artifactId>apps</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}\n</dependencies></project>\n"
    )


def copy(coordinates: Iterable[str], folder: Path, on_file: Callable[[str], None]) -> None:
    """Copies these files into `folder`/lib. `on_file` gets the name of each that is downloaded.

    FramegaugeError with Maven's words if it fails. Maven is ended with all that it has started if this is interrupted.
    """
    if which("mvn") is None:
        raise InputError("mvn: found no such program, expected Maven, which fetches it (apt-get install maven)")
    project = folder / "pom.xml"
    project.write_text(pom(coordinates), "utf-8")
    argv = [
        "mvn", "--batch-mode", "--file", str(project), f"{DEPENDENCY_PLUGIN}:copy-dependencies",
        f"-DoutputDirectory={folder / 'lib'}",
    ]  # fmt: skip
    errors: list[str] = []
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        start_new_session=True,
    ) as running:  # fmt: skip
        try:
            for line in running.stdout or ():
                plain = _COLOUR.sub("", line)
                if (match := _ERROR.search(plain)) is not None:
                    errors.append(match[1])
                if plain.lstrip("[INFO] ").startswith("Downloaded") and (jar := _JAR.search(plain)) is not None:
                    on_file(jar[1])
        except BaseException:
            _end(running)
            raise
    if running.returncode != 0:
        words = one_line(errors[0] if errors else "it printed no error", 400)
        raise FramegaugeError(
            f"mvn failed (exit code {running.returncode}): {words}; expected a network, or a mirror in the settings of "
            "Maven, that has these files"
        )


def _end(running: subprocess.Popen[str]) -> None:
    """Ends Maven and all that it has started: they have a session of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(running.pid, number)
            running.wait(STOP_SECONDS)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
