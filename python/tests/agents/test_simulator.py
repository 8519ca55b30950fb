"""The simulator as a process: results, refusals and endings."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from framegauge.agents import answers
from framegauge.agents.binary import find_agent
from framegauge.agents.simulator import COLUMNS, Processes
from framegauge.cli.main import main
from framegauge.errors import AgentFailure, BadAnswer, InputError
from framegauge.files.tables import table

pytestmark = pytest.mark.agent


def scenario(**more: Any) -> dict[str, Any]:
    return {
        "hosts": [{"name": "h1", "mtu": 1500}, {"name": "h2", "mtu": 1500}],
        "link": {"bits_per_second": 10**8, "rtt_seconds": 0.001, "buffer_bytes": 100_000, "port_mtu": 9216},
        "flows": [{"client": "h1", "server": "h2", "steps": [{"from": "client", "bytes": 100_000}]}],
        "end_seconds": 5.0,
        **more,
    }  # fmt: skip


def test_a_result_and_its_tables() -> None:
    found = Processes(find_agent()).run(scenario())
    assert set(found.tables) == {"transfers", "samples", "drops", "queues"}
    assert found.result["end_seconds"] < 0.1
    (ceiling,) = found.result["ceilings"]
    assert (ceiling["mtu"], ceiling["frame_bytes"], ceiling["mss_bytes"]) == (1500, 1518, 1460)
    assert ceiling["goodput_bits_per_second"] == pytest.approx(94_148_244, abs=1)  # 10^8 x 1448 / 1538


def test_a_bad_scenario_is_one_line() -> None:
    with pytest.raises(InputError, match=r"^simulation: ") as refused:
        Processes(find_agent()).run(scenario(tcp={"congestion_control": "vegas"}))
    assert "expected reno, cubic, dctcp or bbr" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_stopped_it_ends_at_once_and_begins_no_more() -> None:
    # More than a minute of work; it is stopped by the first word that it says.
    endless = scenario(end_seconds=10_000.0)
    endless["flows"][0]["steps"][0]["bytes"] = None
    processes, heard = Processes(find_agent()), threading.Event()

    def stop(_: Any) -> None:
        heard.set()
        processes.stop()

    with pytest.raises(
        AgentFailure, match="the simulation ended with SIGKILL, which the kernel sends, too, when the memory"
    ):
        processes.run(endless, stop)
    assert heard.is_set()
    with pytest.raises(AgentFailure, match="was stopped"):
        processes.run(scenario())


def test_tables_have_the_columns_that_are_read() -> None:
    found = Processes(find_agent()).run(scenario())
    for name, columns in COLUMNS.items():
        assert columns <= set(table(found.tables[name], 1 << 20).column_names), name


# An agent of another build: it does as the real one, and then the change.
OTHER_BUILD = """\
#!{python}
import json, pathlib, subprocess, sys
done = subprocess.run([{agent!r}, *sys.argv[1:]], stdout=subprocess.PIPE)
for line in done.stdout.decode().splitlines():
    said = json.loads(line)
    if "result" not in said:  # its progress
        continue
    folder = pathlib.Path(sys.argv[2])
    {change}
    print(json.dumps(said))
sys.exit(done.returncode)
"""
RENAMED = """\
import pyarrow as pa, pyarrow.ipc
    file = folder / "transfers.arrow"
    if file.exists():
        old = pyarrow.ipc.open_file(pa.memory_map(str(file))).read_all()
        names = [name.replace("complete", "whole") for name in old.column_names]
        with pyarrow.ipc.new_file(str(folder / "new"), old.rename_columns(names).schema) as sink:
            sink.write_table(old.rename_columns(names))
        (folder / "new").rename(file)"""


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ('said["result"].pop("ceilings", None)', "simulate: result: ceilings: found nothing, expected a value"),
        ('said["result"]["extra"] = 1', "simulate: memory: extra: found 1, expected no such key"),
        ('(folder / "queues.arrow").unlink(missing_ok=True)', "simulate: found no queues.arrow, expected it"),
        (RENAMED, "the simulation's table transfers: found no column complete, expected it"),
    ],
    ids=["key lacking", "key more", "table lacking", "column lacking"],
)
def test_an_agent_of_another_build_is_one_line_that_says_what_to_do(
    change: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = tmp_path / "agent"
    agent.write_text(OTHER_BUILD.format(python=sys.executable, agent=find_agent(), change=change))
    agent.chmod(0o755)
    monkeypatch.setenv("FRAMEGAUGE_AGENT", str(agent))
    (tmp_path / "s.yaml").write_text(
        "testbed: {kind: simulator}\nfactors: {mtu: [1500, 9000]}\nworkloads: [{stream: {size: 100 kB}}]\nblocks: 2\n"
    )
    assert main(["simulate", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out")]) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "another build" in line]
    assert expected in line
    assert line.endswith("build it with `make agent` or unset FRAMEGAUGE_AGENT")


def test_words_of_a_newer_framegauge_are_a_matter_of_the_build() -> None:
    with pytest.raises(AgentFailure, match=r"unknown field `later`.*the agent is of another build"):
        Processes(find_agent()).run(scenario(later=1))


def test_progress_is_checked_as_well() -> None:
    with pytest.raises(BadAnswer, match="simulate: progress: now_seconds: found nothing"):
        answers.simulation_of({"end_seconds": 1.0, "segments": 1}, "progress")
