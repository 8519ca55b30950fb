"""From the results of a study to the file that simulations take as their hosts' CPUs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.schemas import conforms

from framegauge.cli import printed
from framegauge.cli.main import main
from framegauge.estimate.model import COSTS
from framegauge.evidence.work import not_modelled, works
from framegauge.experiment import modelled
from framegauge.study import file as study_file

FITTED = {
    "schema": 1, "source": "out", "runs": 24, "left_out": {"the machine was busy": 2},
    "costs": {
        name: {"seconds": place * 1.5e-9, "low_seconds": place * 1e-9, "high_seconds": place * 2e-9}
        for place, name in enumerate(COSTS, 1)
    },
    "deviations": {"sends, MTU 1500": 0.02, "receives, MTU 9000": -0.07},
}  # fmt: skip


def test_the_text_is_a_file_of_cpus(tmp_path: Path) -> None:
    conforms(FITTED, printed.cpu_model())
    text = modelled.text(FITTED)
    assert "differs from the model by 7% at most (receives, MTU 9000)" in text
    (tmp_path / "cpu.yaml").write_text(text)
    path = tmp_path / "study.yaml"
    path.write_text(
        "testbed: {kind: simulator, cpu: cpu.yaml}\nfactors: {mtu: [1500, 9000]}\n"
        "workloads: [{stream: {duration: 30 ms}}]\nblocks: 3\nstop: blocks\n"
    )
    cpu = study_file.load(path).testbed.cpu
    assert cpu is not None
    assert cpu.wakeup == pytest.approx(1.5e-9)
    assert cpu.receive.as_json() == pytest.approx(
        {"packet_seconds": 3e-9, "aggregate_seconds": 4.5e-9, "byte_seconds": 6e-9}
    )
    assert cpu.send.as_json() == pytest.approx(
        {"packet_seconds": 0.0, "aggregate_seconds": 7.5e-9, "byte_seconds": 9e-9}
    )
    assert cpu.as_json(cuts=True)["wakeup_seconds"] == pytest.approx(1.5e-9)


def counters(packets: int, size: int, aggregates: int, sent: int, sent_size: int) -> dict[str, Any]:
    interface = {"rx_packets": packets, "rx_bytes": size, "tx_packets": sent, "tx_bytes": sent_size}
    scheduling = {
        "precedence": "real time", "generators": {"run_seconds": 0.1, "waited_seconds": 0.0, "turns": 1},
        "receive_path": {"run_seconds": 0.1, "waited_seconds": 0.0, "turns": 1},
        "programs": {"run_seconds": 0.0, "waited_seconds": 0.0, "gave_way_seconds": 0.0},
    }  # fmt: skip
    return {"interface": interface, "nstat": {"IpInReceives": aggregates}, "scheduling": scheduling}


def record(**more: Any) -> dict[str, Any]:
    """A transfer of 1,448,000 bytes in 1,000 segments, which h2 takes in as 250 aggregates."""
    nothing = counters(0, 0, 0, 0, 0)
    for name in ("generators", "receive_path"):
        nothing["scheduling"][name]["run_seconds"] = 0.0
    headers = 14 + 40 + 12
    data = 1_448_000 + 1000 * headers

    def use(seconds: float) -> dict[str, float]:
        return {"cpu_seconds": seconds}

    def reading(programs: float, receive_path: float, polls: int) -> dict[str, Any]:
        return {
            "programs": use(programs), "receive_path": use(receive_path), "polls": polls, "elapsed_seconds": 1.0,
            "not_measured": [],
        }  # fmt: skip

    cpu = {"idle_seconds": 0.8, "iowait_seconds": 0.0, "user_seconds": 0.0, "nice_seconds": 0.0, "role": "hosts"}
    return {
        "conditions": {"mtu": {"h1": 1500, "h2": 1500}, "gro": True, "tso": False, "lro": False, "family": 4},
        "cpu": {"h1": reading(0.1, 0.05, 90), "h2": reading(0.2, 0.3, 400)},
        "cpu_idle": {name: reading(0.01, 0.01, 0) for name in ("h1", "h2")},
        "counters_before": {"h1": nothing, "h2": nothing},
        "counters_after": {
            "h1": counters(125, 125 * headers, 125, 1000, data), "h2": counters(1000, data, 250, 125, 125 * headers),
        },
        "measure": {"elapsed_seconds": 1.0, "cpus": [{**cpu, "system_seconds": 0.2}], "fabric": None},
        "workload": {"senders": ["h1"], "receivers": ["h2"], "bytes": 1_448_000},
    } | more  # fmt: skip


def test_what_hosts_did_is_counted_and_their_idle_use_is_not() -> None:
    assert not_modelled(record()) is None
    sender, receiver = works(record(), 4)
    assert (sender.arm, receiver.arm) == (
        "sends, MTU 1500, GRO on, TSO off", "receives, MTU 1500, GRO on, TSO off",
    )  # fmt: skip
    assert sender.block == receiver.block == 4
    assert (sender.seconds, receiver.seconds) == (pytest.approx(0.13), pytest.approx(0.48))
    assert (receiver.wakeups, receiver.packets, receiver.aggregates) == (400, 1000, 250)
    assert (receiver.received_bytes, receiver.sent_aggregates, receiver.sent_bytes) == (1_448_000, 125, 0)
    assert (sender.wakeups, sender.packets, sender.aggregates) == (90, 125, 125)
    assert (sender.received_bytes, sender.sent_aggregates, sender.sent_bytes) == (0, 1000, 1_448_000)


def test_runs_that_say_nothing_are_named() -> None:
    busy = record()["measure"]
    busy["cpus"][0] |= {"system_seconds": 0.9, "idle_seconds": 0.1}
    assert "other programs used" in str(not_modelled(record(measure=busy)))
    assert "not metered" in str(not_modelled(record(cpu={})))
    assert "an overlay was on" in str(not_modelled(record(conditions=record()["conditions"] | {"overlay": "vxlan"})))
    assert "LRO was on" in str(not_modelled(record(conditions=record()["conditions"] | {"lro": True})))
    cpu = record()["cpu"]
    cpu["h2"] |= {"polls": None}
    assert "no thread polls" in str(not_modelled(record(cpu=cpu)))


def test_a_folder_that_does_not_tell_is_one_line(study, execute, tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    execute(study)
    assert main(["estimate", "--model", str(tmp_path / "out")]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "out: found" in line
    assert main(["estimate", "h1", "--model", str(tmp_path / "out")]) == 2
    assert "expected a folder of results alone" in capsys.readouterr().err
    assert main(["estimate", "--model", str(tmp_path / "none"), "--json"]) == 2


def test_its_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "cpu-model"]) == 0
    assert json.loads(capsys.readouterr().out) == printed.cpu_model()
