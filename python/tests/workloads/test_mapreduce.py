"""A cluster in words, a job's history, and what proves its result; without any Java."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.support import PATIENCE_SECONDS

from framegauge.errors import ProgramFailure, StudyError
from framegauge.experiment.planning import missing_programs, stated_conditions, workload_of
from framegauge.files.placeholders import substitute
from framegauge.metrics import METRICS
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.workloads import history
from framegauge.workloads.hadoop import Cluster
from framegauge.workloads.mapreduce import MapReduce, by_purpose, found_all, sorted_as

VALUES = {"run": "/dev/shm/framegauge/run-1", "host": "h2", "address": "10.77.0.2", "mtu": "1500", "h1": "10.77.0.1"}


def study(workload: dict[str, Any] | None = None, hosts: int = 5, **testbed: Any) -> Study:
    asked = {
        "testbed": {"kind": "rack", "topology": "rack", "hosts": hosts, **testbed},
        "factors": {"mtu": [1500, 9000]},
        "workloads": [{"mapreduce": workload}],
    }
    return study_file.parse(yaml.safe_dump(asked), "study.yaml")


def event(kind: str, **words: Any) -> str:
    return json.dumps({"type": kind, "event": {f"org.apache.hadoop.mapreduce.jobhistory.{kind}": words}})


def told(*, end: str = "JOB_FINISHED", name: str = "TeraSort") -> str:
    counters = {"name": "TOTAL", "groups": [{"name": "g", "counts": [{"name": "REDUCE_SHUFFLE_BYTES", "value": 104}]}]}
    lines = ["Avro-Json", '{"type":"record"}', event("JOB_SUBMITTED", jobName=name, submitTime=1000)]
    for number, ended in ((0, 7000), (1, 9000)):
        lines.append(event("REDUCE_ATTEMPT_STARTED", attemptId=f"r{number}", startTime=5000))
        lines.append(event("REDUCE_ATTEMPT_FINISHED", attemptId=f"r{number}", shuffleFinishTime=ended, finishTime=9500))
    if end == "JOB_FINISHED":
        lines.append(event(end, finishTime=11_000, finishedMaps=4, finishedReduces=2, totalCounters=counters))
    elif end:
        lines.append(event(end, jobStatus="FAILED", diagnostics="Task failed\n for a reason"))
    return "\n".join(lines) + "\n"


def test_a_history_tells_times_and_counters() -> None:
    before, first, second = history.split("1\t2\n" + told(name="TeraGen") + told())
    assert before == "1\t2\n"
    assert history.parse("x", first).name == "TeraGen"
    job = history.parse("x", second)
    assert (job.name, job.seconds, job.shuffle_seconds) == ("TeraSort", 10.0, 3.0)
    assert (job.maps, job.reduces, job.counters) == (4, 2, {"REDUCE_SHUFFLE_BYTES": 104})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (told(end="JOB_FAILED"), r"^x: found job TeraSort FAILED \(Task failed for a reason\)$"),
        (told(end=""), r"^x: found no end of job TeraSort, expected one$"),
        ("", r"^x: found no end of job without a name, expected one$"),
        ("{broken", r"^x: found what is no history of a job \(JSONDecodeError: .*\), expected one of Hadoop's$"),
        (event("JOB_SUBMITTED", jobName="a"), r"^x: found what is no history of a job \(KeyError: 'submitTime'\)"),
    ],
)
def test_a_history_that_is_none_is_one_line(text: str, message: str) -> None:
    with pytest.raises(ProgramFailure, match=message):
        history.parse("x", text)


def test_a_sort_is_proved_by_teragens_checksum() -> None:
    assert sorted_as("checksum\t7a27e2d0d55de\n", 0x7A27E2D0D55DE) == {"checksum": "7a27e2d0d55de"}
    # Hadoop counts the low 64 bits, with a sign.
    assert sorted_as("checksum\t1ffffffffffffffff\n", -1) == {"checksum": "1ffffffffffffffff"}
    for result, message in (
        ("checksum\t7\n", "teravalidate: found checksum 7, expected 8 as of teragen"),
        ("", "teravalidate: found checksum none, expected 8 as of teragen"),
        (
            "error\tmisorder in part-r-00001\nchecksum\t8\n",
            "teravalidate: found error misorder in part-r-00001, expected",
        ),
    ):
        with pytest.raises(ProgramFailure, match=message):
            sorted_as(result, 8)


def test_a_search_is_proved_by_the_rows_that_it_found() -> None:
    assert found_all("3\t00\n2\tFF\n", 5) == {"rows": 5}
    with pytest.raises(ProgramFailure, match=r"grep: found 5 rows, expected the 6 that teragen wrote"):
        found_all("3\t00\n2\tFF\n", 6)


def test_bytes_are_told_apart_by_port() -> None:
    rows = [{"port": port, "sent_bytes": port or 1} for port in (13562, 9866, 9000, 8031, None)]
    found = by_purpose({"traffic": {"h2": rows, "h3": rows[:1]}, "traffic_inside": {"h2": rows[1:2]}})
    assert found["between_hosts"] == {"shuffle_bytes": 27124, "hdfs_bytes": 9866, "rpc_bytes": 17032}
    assert found["within_hosts"] == {"shuffle_bytes": 0, "hdfs_bytes": 9866, "rpc_bytes": 0}


def test_a_cluster_writes_into_the_runs_folder_only() -> None:
    cluster = Cluster("/cache/hadoop-3.4.2", "h1", ["h2", "h3"], 32 << 20)
    files = {name: substitute(text, VALUES) for name, text in cluster.configuration().items()}
    for name, text in files.items():
        for line in text.splitlines():
            for mark in ("file://", ":/tmp", ">/tmp", ">/var"):
                assert mark not in line or VALUES["run"] in line, (name, line)
    assert "<name>yarn.nodemanager.hostname</name><value>h2</value>" in files["conf/yarn-site.xml"]
    assert "<name>dfs.blocksize</name><value>33554432</value>" in files["conf/hdfs-site.xml"]
    for task in (*cluster.prepare()[1:], *cluster.servers(), cluster.job("Main", {"a.b": 1}, "/in", within=5.0)):
        words = [substitute(word, VALUES) for word in task.argv]
        assert f"-Djava.io.tmpdir={VALUES['run']}/tmp" in words
        assert "-XX:-UsePerfData" in words  # Java's own files in /tmp
        assert f"{VALUES['run']}/conf:/cache/hadoop-3.4.2/*" in words
    assert [task.hosts for task in cluster.servers()] == [("h1",), ("h1",), ("h2", "h3"), ("h2", "h3")]


def test_hdfs_may_be_on_the_master_alone() -> None:
    asked = study({"hdfs": "master", "at_once": 14, "reduces_at_once": 2, "workers": ["h3", "h5"]})
    workload = workload_of(asked, block_order(asked, 0)[0])
    assert isinstance(workload, MapReduce)
    cluster = workload.cluster
    assert [task.hosts for task in cluster.servers()] == [("h1",), ("h1",), ("h1",), ("h3", "h5")]
    for name, value in (("reduce.shuffle.parallelcopies", 14), ("job.running.reduce.limit", 2)):
        setting = f"<name>mapreduce.{name}</name><value>{value}</value>"
        assert setting in cluster.configuration()["conf/mapred-site.xml"]
    # Fewer programs start in it.
    plain = study({"reduces": 1})
    assert workload.expected_seconds(None) < workload_of(plain, block_order(plain, 0)[0]).expected_seconds(None)


@contextmanager
def started(folder: str) -> Iterator[list[int]]:
    """A program and its child, which have the configuration of a run: their process ids."""
    environment = {**os.environ, "HADOOP_CONF_DIR": f"{folder}/conf"}
    with subprocess.Popen(
        ["bash", "-c", "sleep 60 & echo $!; wait"], env=environment, stdout=subprocess.PIPE, start_new_session=True
    ) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        try:
            yield [program.pid, child]
        finally:
            os.killpg(program.pid, 9)


def stopped(processes: list[int]) -> list[bool]:
    return [Path(f"/proc/{each}/stat").read_text().rpartition(") ")[2][0] == "T" for each in processes]


def test_a_cluster_is_stopped_whole_and_nothing_else(tmp_path: Path) -> None:
    cluster = Cluster("/cache", "h1", ["h2"], 32 << 20)
    assert cluster.stop().hosts == cluster.resume().hosts == ("h1", "h2")
    with started(f"{tmp_path}/a") as mine, started(f"{tmp_path}/b") as others:
        for task, is_stopped in ((cluster.stop(), True), (cluster.resume(), False), (cluster.stop(), True)):
            words = [substitute(word, {"run": f"{tmp_path}/a"}) for word in task.argv]
            subprocess.run(words, check=True, timeout=PATIENCE_SECONDS)
            assert (stopped(mine), stopped(others)) == ([is_stopped] * 2, [False] * 2)


def test_a_study_makes_the_workload_of_its_parameters() -> None:
    asked = study({"job": ["terasort", "grep"], "size": "1 GB", "reduces": 8, "block": "64 MiB", "within": "9 min"})
    assert asked.margin().keys() == {"job_time", "shuffle_time", "task_cpu_time", "task_cpu_cost"}
    assert METRICS["job_time"].higher_is_better is False
    made: dict[str, MapReduce] = {}
    for slot in block_order(asked, 0):
        workload = workload_of(asked, slot)
        assert isinstance(workload, MapReduce)
        made[workload.job] = workload
        assert stated_conditions(asked, slot)["size_bytes"] == 1_000_000_000
    sort, grep = made["terasort"], made["grep"]
    assert (sort.rows, sort.maps, sort.reduces, sort.within_seconds) == (10_000_000, 15, 8, 540.0)
    assert sort.cluster.workers == ["h2", "h3", "h4", "h5"]
    (task,) = grep.programs.clients
    assert substitute(task.argv[-2], VALUES) == r"\x00\x11[0-9A-F]{30}([0-9A-F]{2})"
    assert sort.programs.nagle is None
    # As many maps and reduces as workers, at least.
    small = workload_of(study(None), block_order(study(None), 0)[0])
    assert isinstance(small, MapReduce)
    assert (small.maps, small.reduces, small.rows) == (4, 4, 1_000_000)


def test_without_hadoop_one_line_has_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (lacking,) = [each for each in missing_programs(study({})) if each["name"] == "hadoop-3.4.2"]
    assert lacking["remedy"] == "framegauge apps fetch hadoop"
    assert lacking["found"] == f"no {tmp_path}/framegauge/apps/hadoop-3.4.2"


@pytest.mark.parametrize(
    ("workload", "testbed", "message"),
    [
        ({}, {"kind": "veth"}, 'testbed.kind: found "veth", expected rack for mapreduce'),
        ({}, {"kind": "fake"}, 'testbed.kind: found "fake", expected rack for mapreduce'),
        ({}, {"family": 6}, "testbed.family: found 6, expected 4 for mapreduce: Hadoop does not speak IPv6"),
        ({}, {"hosts": 2}, 'found "2 hosts", expected topology: rack with at least 3 hosts'),
        ({"replication": 5}, {}, 'found "5 hosts", expected topology: rack with at least 6 hosts'),
        ({"hdfs": "master", "replication": 2}, {}, "replication: found 2, expected 1 with hdfs: master"),
        ({"workers": ["h1", "h3"]}, {}, 'found "h1", expected one of h2, h3, h4, h5: h1 is the master'),
        ({"workers": ["h3", "h3"]}, {}, 'workers: found "h3, h3", expected at least 2 hosts, each once'),
        ({"size": "150 B"}, {}, "size: found 150, expected a multiple of 100 bytes, the size of a row"),
        ({"block": "1 kB"}, {}, "block: found 1000, expected at least 1 MiB, and a multiple of 512 bytes"),
        ({"job": "wordcount"}, {}, "expected 'terasort' or 'grep'"),
    ],
)
def test_what_cannot_be_is_one_line(workload: dict[str, Any], testbed: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError) as error:
        study(workload, **testbed)
    (line,) = error.value.problems
    assert line.startswith("study.yaml:")
    assert message in line
