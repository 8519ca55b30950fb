"""A real Prometheus server with series of a past that is made up, or that scrapes real exporters; it leaves nothing."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

__all__ = ["START", "STEP", "Series", "backfilled", "prometheus"]

START = 1_704_888_000  # 2024-01-10T12:00:00Z: past, whatever the clock of this machine says
STEP = 15
Series = Mapping[tuple[str, tuple[tuple[str, str], ...]], Sequence[float]]  # by name and labels: a value per STEP
LISTENING = re.compile(r'msg="Listening on" address=(\S+)')
READY = "Server is ready to receive web requests."


@contextlib.contextmanager
def prometheus(
    config: str = "",
    data: Path | None = None,
    words: Sequence[str] = (),
    inside: Sequence[str] = (),
    place: str = "127.0.0.1:0",
) -> Iterator[str]:
    """A server with this configuration, as its address; `inside` is a command that runs another in a namespace."""
    with tempfile.TemporaryDirectory(prefix="framegauge-prometheus.") as name:
        folder = Path(name)
        (folder / "prometheus.yml").write_text(config or "scrape_configs: []\n")
        command = [
            *inside, "prometheus", f"--config.file={folder}/prometheus.yml", f"--web.listen-address={place}",
            f"--storage.tsdb.path={data or folder / 'data'}", *words,
        ]  # fmt: skip
        server = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, cwd=folder, env={**os.environ, "GOMAXPROCS": "2"}
        )
        try:
            assert server.stderr is not None
            address, ready, said = "", False, []
            for line in server.stderr:
                said.append(line)
                if (found := LISTENING.search(line)) is not None:
                    address = found[1]
                ready = ready or READY in line
                if address and ready:
                    break
            else:
                raise AssertionError("".join(said))
            yield f"http://{address}"
        finally:
            server.send_signal(signal.SIGTERM)
            server.stderr.read()
            server.wait()
            server.stderr.close()


def backfilled(folder: Path, series: Series) -> Path:
    """A folder of a server's data with these series, from START on."""
    lines = []
    for name in sorted({name for name, _ in series}):
        # A counter's family has its name without the suffix; "unknown" takes any.
        lines.append(f"# TYPE {name} unknown")
        for (mine, labels), values in series.items():
            if mine == name:
                inside = ",".join(f'{key}="{value}"' for key, value in labels)
                lines += [
                    f"{name}{{{inside}}} {value!r} {START + STEP * place}"
                    for place, value in enumerate(map(float, values))
                    if not np.isnan(value)
                ]
    text = folder / "series.txt"
    text.write_text("\n".join([*lines, "# EOF\n"]))
    data = folder / "data"
    promtool = shutil.which("promtool")
    assert promtool is not None
    subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", "-q", str(text), str(data)],
        check=True,
        capture_output=True,
    )
    return data
