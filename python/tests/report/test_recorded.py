"""A run as flows in a CSV file, and replayed: the same bytes in the same time, whatever the workload."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers import recorded as conversations
from helpers.sealing import seal
from helpers.support import STUDY

from framegauge.cli.main import main
from framegauge.errors import CorruptResults, InputError
from framegauge.files.recordings import Recorded, Recording, read
from framegauge.report.recorded.rows import Chains, begins
from framegauge.report.recorded.run import recorded
from framegauge.results import journal
from framegauge.results.spools import columns

HEAD = """\
question: How long does it take?
testbed: {{kind: simulator, {bed}, link: {{rate: {rate}}}}}
factors: {{mtu: {{levels: [1500, 9000], baseline: 1500}}, rtt: 1 ms}}
workloads:
  - {workload}
blocks: 2
stop: blocks
"""
RACK = "topology: rack, hosts: 4"
FRAME = 1538 * 8 / 1e9
# The generator's greeting is a segment of its own, of one that is replayed it is not; and hosts' jitter is drawn anew,
# which moves a few interrupts of 50 us.
JITTER = 3 * FRAME + 2 * 50e-6
STUDIES = {
    "stream": "stream: {size: 1 MB, repeat: 40 ms}",
    "rr": "rr: {request: 200 B, response: 20 kB, connections: 2, duration: 20 ms, pattern: many-to-one}",
    "rate": "rr: {response: 20 kB, rate: 500, arrivals: poisson, connections: 3, duration: 50 ms}",
    "incast": "incast: {servers: 3, unit: 20 kB, rounds: 4}",
    "shuffle": "shuffle: {size: 20 kB, at_once: 1}",
    "users": "users: {count: 3, think: 5 ms, response: 10 kB, duration: 50 ms}",
    "arrivals": "arrivals: {sizes: 20 kB, load: 0.01, duration: 50 ms}",
}


def simulated(folder: Path, name: str, workload: str, bed: str = RACK, rate: str = "1 Gb/s") -> Path:
    (folder / f"{name}.yaml").write_text(HEAD.format(workload=workload, bed=bed, rate=rate))
    assert main(["simulate", str(folder / f"{name}.yaml"), "--out", str(folder / name)]) in (0, 3)
    return folder / name


def written(folder: Path, number: int, file: Path) -> Recording:
    assert main(["report", str(folder), "--flows", str(file), "--run", str(number)]) == 0
    return read(file)


def level_of(folder: Path, number: int) -> object:
    return next(run.level for run in journal.read(folder).runs if run.number == number)


def replayed(folder: Path, level: object, name: str = "replayed.arrow") -> dict[str, np.ndarray]:
    """The first run with that level: the order of arms is drawn."""
    number = next(run.number for run in journal.read(folder).runs if run.level == level)
    found = columns(folder / f"runs/{number}/{name}", ("start_seconds", "end_seconds", "bytes", "reverse_bytes"))
    assert found is not None
    return {key: np.array(values) for key, values in found.items()}


def times(recording: Recording) -> np.ndarray:
    return np.array([(flow.end_seconds or np.nan) - flow.start_seconds for flow in recording.flows])


@pytest.mark.agent
@pytest.mark.parametrize("kind", STUDIES)
def test_a_simulated_run_takes_the_same_time_when_it_is_replayed(tmp_path: Path, kind: str) -> None:
    bed = "topology: pair" if kind == "stream" else RACK
    first = simulated(tmp_path, "first", STUDIES[kind], bed)
    recording = written(first, 1, tmp_path / "flows.csv")
    assert len(recording.flows) > 1
    second = simulated(tmp_path, "second", "replay: {flows: flows.csv, ends: as-recorded}", bed)
    found = replayed(second, level_of(first, 1))
    assert found["bytes"].tolist() == [flow.bytes for flow in recording.flows]
    assert found["reverse_bytes"].tolist() == [flow.reverse_bytes for flow in recording.flows]
    more = found["end_seconds"] - found["start_seconds"] - times(recording)
    # Connections that were open before what is recorded are opened again, which takes a round trip.
    seen: set[str] = set()
    opens = np.array([not (flow.connection in seen or seen.add(flow.connection)) for flow in recording.flows])  # type: ignore[func-returns-value]
    late = np.where(opens, 1e-3, 0.0) if kind in ("rate", "users") else 0.0
    assert more == pytest.approx(np.zeros(len(more)) + late, abs=2 * JITTER)
    assert float(np.median(np.abs(more - late))) <= JITTER
    # Once more, from its own table.
    again = written(second, 1, tmp_path / "again.csv")
    assert [replace(flow, start_seconds=0.0, end_seconds=None, connection="") for flow in again.flows] == [
        replace(flow, start_seconds=0.0, end_seconds=None, connection="") for flow in recording.flows
    ]
    shared = [{flow.connection for flow in each.flows} for each in (recording, again)]
    assert len(shared[0]) == len(shared[1])


@pytest.mark.agent
def test_what_a_run_waited_for_is_what_a_replay_waits_for(tmp_path: Path) -> None:
    def flows(kind: str) -> list[Recorded]:
        (tmp_path / kind).mkdir()
        return recorded(simulated(tmp_path / kind, "out", STUDIES[kind]), 1)

    found = flows("incast")
    assert [flow.after for flow in found] == [*[()] * 3, *[(0, 1, 2)] * 3, *[(3, 4, 5)] * 3, *[(6, 7, 8)] * 3]
    assert len({flow.connection for flow in found}) == 3
    for flow in found:
        assert max((found[each].end_seconds or 0 for each in flow.after), default=0.0) <= flow.start_seconds + 1e-9
    # One fetch at a time: each host's wait for one another.
    found = flows("shuffle")
    for host in ("h1", "h2", "h3", "h4"):
        mine = [place for place, flow in enumerate(found) if flow.client == host]
        assert [found[place].after for place in mine] == [(), *((place,) for place in mine[:-1])]
    # A closed loop waits for its last response, and requests at a rate for nothing but their connection.
    found = flows("rr")
    for name in {flow.connection for flow in found}:
        mine = [place for place, flow in enumerate(found) if flow.connection == name]
        assert [found[place].after for place in mine] == [(), *((place,) for place in mine[:-1])]
        assert all(found[next_].start_seconds == found[place].end_seconds for place, next_ in pairwise(mine))
    assert not any(flow.after for flow in flows("rate"))


@pytest.mark.agent
def test_requests_and_bulk_of_mixed_are_on_one_clock(tmp_path: Path) -> None:
    out = simulated(tmp_path, "out", "mixed: {rr: {duration: 20 ms}, bulk: {rate: 2 Mb/s}}", RACK, "10 Mb/s")
    found = recorded(out, 1)
    bulk = [flow for flow in found if not flow.reverse_bytes]
    assert [(flow.client, flow.server, flow.start_seconds) for flow in bulk] == [("h2", "h4", 0.0), ("h3", "h4", 0.0)]
    record = json.loads((out / "runs/1/record.json").read_text())["workload"]
    assert sum(flow.bytes for flow in bulk) == record["bytes"] + 2 * 48
    asked = [flow for flow in found if flow.reverse_bytes]
    assert len(asked) == record["asked"]["requests"]
    assert {(flow.client, flow.server, flow.bytes, flow.reverse_bytes) for flow in asked} == {("h1", "h4", 100, 1000)}


@pytest.mark.agent
def test_streams_of_more_hosts_than_have_tables(tmp_path: Path) -> None:
    bed = "topology: rack, hosts: 70"
    for name, asked, parts in (
        ("sized", "size: 10 kB, repeat: 0 s", (10_048, 8)), ("reverse", "size: 10 kB, repeat: 0 s, reverse: true", (48, 10_000)),
    ):  # fmt: skip
        found = recorded(simulated(tmp_path, name, f"stream: {{{asked}, pattern: many-to-one}}", bed), 1)
        assert [(flow.bytes, flow.reverse_bytes) for flow in found] == [parts] * 69
        assert {flow.server for flow in found} == {"h70"}


def test_a_run_of_iperf3_has_the_bytes_that_it_printed(tmp_path: Path) -> None:
    for name in ("iperf3-one-to-one", "iperf3-many-to-one", "iperf3-reverse"):
        run = conversations.load(name).replay(tmp_path / name)[0]
        found = recorded(tmp_path / name, run.number)
        record = json.loads((tmp_path / name / f"runs/{run.number}/record.json").read_text())["workload"]
        assert len(found) == sum(len(each["flow_bits_per_second"]) for each in record["clients"])
        assert sum(flow.bytes + flow.reverse_bytes for flow in found) == pytest.approx(record["bytes"], abs=len(found))
        assert {flow.server if flow.reverse_bytes else flow.client for flow in found} == set(record["senders"])
        assert min(flow.start_seconds for flow in found) == 0


def test_a_run_of_ftp_has_its_files_one_after_the_other(tmp_path: Path) -> None:
    for name in ("ftp-one-to-one", "ftp-many-to-one"):
        run = conversations.load(name).replay(tmp_path / name)[0]
        found = recorded(tmp_path / name, run.number)
        record = json.loads((tmp_path / name / f"runs/{run.number}/record.json").read_text())["workload"]
        assert sum(flow.reverse_bytes for flow in found) == record["bytes"]
        assert {flow.server for flow in found} == set(record["senders"])
        for server in record["senders"]:
            mine = [place for place, flow in enumerate(found) if flow.server == server]
            assert [found[place].after for place in mine] == [(), *((place,) for place in mine[:-1])]
            assert all((found[place].end_seconds or 0) <= found[next_].start_seconds for place, next_ in pairwise(mine))


@pytest.fixture(name="fake", scope="module")
def _fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fake")
    (folder / "s.yaml").write_text(STUDY)
    assert main(["study", str(folder / "s.yaml"), "--out", str(folder / "out")]) == 0
    return folder / "out"


def test_a_run_that_is_not_there_is_one_line(fake: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"found no run 7000, expected one of 1 to \d+$"):
        recorded(fake, 7000)
    with pytest.raises(InputError, match=r"found no results.json"):
        recorded(tmp_path, 1)


def of_workload(fake: Path, folder: Path, name: str) -> Path:
    """The folder with its runs said to be of another workload."""
    lines = [json.loads(line) | {"workload": name} for line in (fake / "runs.jsonl").read_text().splitlines()]
    (folder / "runs").mkdir(parents=True)
    (folder / "results.json").write_bytes((fake / "results.json").read_bytes())
    (folder / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "runs/1").symlink_to(fake / "runs/1")
    return seal(folder)


@pytest.mark.parametrize("name", ["web", "mapreduce", "my-program"])
def test_programs_without_captures_say_how_to_get_them(fake: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as failed:
        recorded(of_workload(fake, tmp_path / "out", name), 1)
    (line,) = str(failed.value).splitlines()
    assert f"run 1: found no times of the connections of {name}, expected a run of a study with" in line
    assert "meters: {diagnose: on}" in line
    assert "framegauge diagnose CAPTURE --flows FILE" in line


@pytest.mark.parametrize("name", ["rr", "mixed", "users", "incast", "shuffle", "arrivals", "replay", "iperf3", "ftp"])
def test_a_folder_that_makes_no_sense_is_one_line(fake: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises((InputError, CorruptResults)) as failed:
        recorded(of_workload(fake, tmp_path / "out", name), 1)
    (line,) = str(failed.value).splitlines()
    assert "found" in line
    assert "expected" in line


def test_starts_count_from_the_first_and_who_is_waited_for_keeps_its_place() -> None:
    chains = Chains()
    chains.add(Recorded("b", "c", 12.0, 1, 0, 13.0), "one")
    chains.add(Recorded("a", "c", 10.0, 1, 0, 10.0))
    chains.add(Recorded("b", "c", 13.0, 1, 0, 14.0), "one")
    assert chains.in_order() == [
        Recorded("a", "c", 0.0, 1), Recorded("b", "c", 2.0, 1, 0, 3.0), Recorded("b", "c", 3.0, 1, 0, 4.0, (1,)),
    ]  # fmt: skip


def test_hosts_whose_clocks_are_apart_began_together() -> None:
    assert begins([7.0, 5.0, 5.5], 2.0) == [2.0, 0.0, 0.5]
    assert begins([90_000.0, 5.0], 2.0) == [0.0, 0.0]
    assert begins([], 2.0) == []
