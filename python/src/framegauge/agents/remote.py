"""What a worker of a Dask cluster runs. It is sent there as text: workers need Dask and the standard library only."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import tempfile
from pathlib import Path

__all__ = ["answer", "signature", "simulate"]

HEAD_BYTES = 1 << 16
PREFIX = "framegauge-"


def signature(path: str) -> tuple[int, str] | None:
    """The size of a file and a digest of its beginning; None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            head = hashlib.sha256(file.read(HEAD_BYTES)).hexdigest()
            return os.fstat(file.fileno()).st_size, head
    except OSError:
        return None


def answer(
    agent: bytes, machine: str, words: list[str], path: str, expected: tuple[int, str], data: bytes | None = None
) -> tuple[int, bytes, str] | None:
    """The exit code of the agent's diagnosis of a capture, what it printed, and its complaint.

    Without `data` the capture is the file of this path, if it is the same one here; None if it is not.
    """
    if complaint := _stranger(machine):
        return 1, b"", complaint
    if data is None and signature(path) != expected:
        return None
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=_place()) as folder:
        place = path
        if data is not None:
            # The name is in what is said of a bad file, and its ending tells how it is compressed.
            place = str(Path(folder) / Path(path).name)
            Path(place).write_bytes(data)
        process = _run(agent, folder, ["diagnose", *words, place])
        shown = os.fsencode(path)
        return (
            process.returncode,
            process.stdout.replace(os.fsencode(place), shown),
            process.stderr.replace(os.fsencode(place), shown).decode(errors="replace"),
        )


def simulate(agent: bytes, machine: str, scenario: bytes, files: list[str]) -> tuple[int, bytes, str, dict[str, bytes]]:
    """The exit code of the agent's simulation, the last line that it printed, its complaint, and its files."""
    if complaint := _stranger(machine):
        return 1, b"", complaint, {}
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=_place()) as folder:
        process = _run(agent, folder, ["simulate", folder], scenario)
        contents = {}
        if process.returncode == 0:
            contents = {name: (Path(folder) / name).read_bytes() for name in files}
        lines = process.stdout.splitlines()
        return process.returncode, lines[-1] if lines else b"", process.stderr.decode(errors="replace"), contents


def _place() -> str | None:
    """The folder of the worker, which Dask sweeps when a worker there has died; without a worker the usual place."""
    try:
        from distributed import get_worker

        return str(get_worker().local_directory)
    except (ImportError, ValueError):
        return None


def _stranger(machine: str) -> str | None:
    """The complaint about a worker on which the agent cannot run."""
    own_machine = platform.machine()
    return None if own_machine == machine else f"found a worker with {own_machine}, expected {machine}, as here"


def _run(agent: bytes, folder: str, words: list[str], stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    program = Path(folder) / "agent"
    program.write_bytes(agent)
    program.chmod(0o700)
    return subprocess.run([str(program), *words], input=stdin, capture_output=True, check=False)
