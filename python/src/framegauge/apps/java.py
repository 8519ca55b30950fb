"""The machine's own Java, which runs what is fetched."""

from __future__ import annotations

import re
import subprocess
from shutil import which

from framegauge.errors import InputError

__all__ = ["OLDEST", "check", "version_of"]

OLDEST, NEWEST = 11, 23  # Hadoop 3.4 uses the security manager, which Java 24 no longer has
EXPECTED = f"Java {OLDEST} to {NEWEST} (apt-get install openjdk-17-jre-headless)"
ANSWER_SECONDS = 30.0


def version_of(text: str) -> int | None:
    """The major version in what `java -version` prints; None if there is none."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return None if match is None else int(match[1])


def check() -> str:
    """The path of a Java that will do; InputError if there is none."""
    path = which("java")
    if path is None:
        raise InputError(f"java: found no such program, expected {EXPECTED}")
    try:
        process = subprocess.run(
            [path, "-version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=ANSWER_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"java: found {path}, which cannot be run ({error}), expected {EXPECTED}") from None
    version = version_of(process.stderr + process.stdout)
    if version is None or not OLDEST <= version <= NEWEST:
        description = f"{path} of an unknown version" if version is None else f"{path} of version {version}"
        raise InputError(f"java: found {description}, expected {EXPECTED}")
    return path
