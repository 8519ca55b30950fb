"""The scenario of a run: the study's network, and the settings of the rack's hosts."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.support import ROOT

from framegauge.experiment.planning import conditions_of, seed_of, workload_of
from framegauge.experiment.simulated.pool import nobody
from framegauge.experiment.simulated.scenario import USUAL_WINDOWS, scenario
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.study.sweep import Source, simulated
from framegauge.testbeds.base import Host
from framegauge.workloads.work import Known

FILE = """\
testbed: {kind: rack, topology: rack, hosts: 3, link: {rate: 1 Gb/s, buffer: 128 KiB}}
factors: {mtu: [1500, 9000]}
workloads: [{stream: {duration: 1 s}}]
"""


def study_of(text: str) -> Study:
    return simulated(Source(text, "s.yaml"))[0]


def asked(text: str, block: int = 0, level: Any = 1500) -> dict[str, Any]:
    study = study_of(text)
    slot = next(slot for slot in block_order(study, block) if slot.arm.level == level)
    conditions, workload = conditions_of(study, slot), workload_of(study, slot)
    assert isinstance(workload, Known)
    work = workload.work([Host(name, name, nobody()) for name in conditions.hosts])
    return scenario(conditions, work, study.testbed.jitter or 0.0, seed_of(study, slot))


def test_hosts_are_bounded_as_those_of_the_rack() -> None:
    found = asked(FILE)
    assert found["shaper"] == {"factor": 0.999}
    assert found["tcp"] == {
        "congestion_control": "cubic", "family": 4, "nagle": "on", "gso_bytes": 36864, "tso_rtt_log": 0,
        "output_limit_bytes": 32768,
    }  # fmt: skip
    assert found["jitter_seconds"] == pytest.approx(5e-6)
    assert found["nic"] == {"moderation_seconds": 5e-05, "coalesces": False}
    assert found["link"] == {
        "bits_per_second": 10**9, "rtt_seconds": 0.0002, "buffer_bytes": 131072, "port_mtu": 9216,
    }  # fmt: skip
    assert [host["name"] for host in found["hosts"]] == ["h1", "h2", "h3"]


def test_without_shaping_the_kernels_own_limits_hold() -> None:
    found = asked(FILE.replace("9000]", "9000], shaping: off"))
    assert found["shaper"] is None
    assert "tso_rtt_log" not in found["tcp"]


def test_arms_of_a_block_share_a_seed_and_blocks_do_not() -> None:
    seeds = {block: {asked(FILE, block, level)["seed"] for level in (1500, 9000)} for block in (0, 1)}
    assert [len(each) for each in seeds.values()] == [1, 1]
    assert seeds[0] != seeds[1]


def test_settings_with_a_meaning_are_obeyed() -> None:
    sysctls = {
        "tcp_sack": "0", "tcp_timestamps": "0", "tcp_ecn": "1", "tcp_slow_start_after_idle": "0",
        "tcp_rto_min_us": "5000", "tcp_limit_output_bytes": "262144", "tcp_tso_rtt_log": "9",
        "tcp_rmem": "4096 131072 33554432", "tcp_pacing_ca_ratio": "150",
    }  # fmt: skip
    lines = "".join(f"  net.ipv4.{name}: '{value}'\n" for name, value in sysctls.items())
    found = asked(f"{FILE}sysctls:\n{lines}")["tcp"]
    assert (found["sack"], found["timestamps"], found["ecn"], found["slow_start_after_idle"]) == (
        False,
        False,
        True,
        False,
    )
    assert found["minimum_rto_seconds"] == pytest.approx(0.005)
    assert (found["output_limit_bytes"], found["tso_rtt_log"]) == (262144, 9)
    assert found["receive_window_bytes"] == (65535, 16777216)
    assert found["pacing_percent"] == (200, 150)


@pytest.mark.parametrize(("level", "rate"), [("off", None), ("on", 10**13), ("75 Mb/s", 75_000_000)])
def test_pacing_is_that_of_each_flow(level: str, rate: int | None) -> None:
    text = FILE.replace("9000]", f"9000], pacing: {level}").replace("1 s}", "1 s, pattern: many-to-one}")
    assert [flow.get("pacing_bits_per_second") for flow in asked(text)["flows"]] == [rate, rate]


def test_initial_windows_and_requests() -> None:
    text = FILE.replace("stream: {duration: 1 s}", "rr: ").replace("9000]", "9000], tuning: old")
    windows = "{initial_window: 3, initial_receive_window: 4, slow_start_threshold: 16}"
    found = asked(f"{text}tunings: {{old: {windows}}}\n")["tcp"]
    assert found["nagle"] == "off"
    assert found["initial_window_segments"] == 3
    assert found["initial_receive_window_segments"] == 4
    assert found["slow_start_threshold_segments"] == 16


def test_merging_is_that_of_the_nic_or_of_the_kernel() -> None:
    for factor in ("offloads: on", "gro: on"):
        assert asked(FILE.replace("9000]", f"9000], {factor}"))["nic"]["coalesces"]


@pytest.mark.parametrize("name", ["fat-tree", "queues", "blackout"])
def test_the_networks_of_the_examples_are_described(name: str) -> None:
    study = study_of((ROOT / f"examples/{name}.yaml").read_text())
    slot = block_order(study, 0)[0]
    conditions = conditions_of(study, slot)
    workload = workload_of(study, slot)
    assert isinstance(workload, Known)
    work = workload.work([Host(each, each, nobody()) for each in conditions.hosts])
    found = scenario(conditions, work, 0.0, seed_of(study, slot))
    assert {**conditions.network, "seed": found["seed"]}.items() <= found.items()
    assert len(found["flows"]) == len(work.flows)


def test_the_usual_windows_are_those_of_the_model() -> None:
    first, most = USUAL_WINDOWS
    settings = (ROOT / "crates/simulator/src/settings.rs").read_text()
    assert f"receive_window_bytes: ({first:_}, {most:_})," in settings
