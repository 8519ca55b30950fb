"""Raising the MTUs of all hosts under a workload that goes on: the order, what is lost, and which connections follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.real import alone, but_for_loads, judged, record, run, shown, study
from helpers.support import SOAK, by_length
from helpers.wire import counted_exactly

from framegauge.agents.pipe import Agent
from framegauge.evidence.nic import fabric_hosts
from framegauge.experiment.planning import searched
from framegauge.results.journal import Run
from framegauge.study.model import Study
from framegauge.testbeds.base import Json
from framegauge.workloads import ceph, nfs
from framegauge.workloads.base import Program
from framegauge.workloads.iscsi import NEEDS

BED = {"kind": "rack", "topology": "rack", "hosts": 3, "link": {"rate": "100 Mb/s", "port_mtu": 1500}}


def needs(programs: Sequence[Program]) -> list[pytest.MarkDecorator]:
    return [pytest.mark.needs(each.name, remedy=each.remedy) for each in programs if not each.is_there(searched())]


def marked(programs: Sequence[Program]) -> Callable[[Any], Any]:
    """Those programs are needed by a test."""

    def decorated(test: Any) -> Any:
        for mark in needs(programs):
            test = mark(test)
        return test

    return decorated


DISK = {"iscsi": {"duration": "2.1 s", "size": "16 MiB", "rate": 100}}


def raised(at: str, workload: Mapping[str, Any], **change: Any) -> Study:
    """One run in which everything is raised from 1500 to 9000."""
    asked = study(
        testbed=BED, margins={"operations": "5 %"}, workloads=[workload],
        factors={"mtu": {"levels": [1500, 1400], "baseline": 1500}},
        changes=[{"at": at, "hosts": "all", "mtu": 9000, "hold": True, **change}],
    )  # fmt: skip
    return alone(asked, mtu=1500)


def switched(agent: Agent, folder: Path, workload: Mapping[str, Any] = DISK, **change: Any) -> tuple[Json, Json]:
    """The record of a run that was raised in the middle, and its reading of the switch. Clients that a machine holds up
    may begin after it."""

    def is_divided(runs: Sequence[Run]) -> bool:
        (each,) = runs
        return all(one["before"] and one["after"] for one in each.readings["switch"]["clients"])

    out = folder / "out"
    (each,) = shown(agent, raised("1.5 s", workload, **change), out, is_divided)
    return record(out, each), each.readings["switch"]


@marked(NEEDS)
def test_routes_are_held_until_every_port_and_host_is_ready_and_nothing_is_too_large(
    rack_agent: Agent, tmp_path: Path
) -> None:
    told, found = switched(rack_agent, tmp_path, reopen=True)
    order = [next(key for key in ("route_mtu", "mtu", "reopen") if key in each["set"]) for each in told["changes"]]
    assert order == ["route_mtu"] * 3 + ["mtu"] + ["mtu"] * 3 + ["route_mtu"] * 3 + ["reopen"] * 3
    assert [each["set"]["route_mtu"] for each in told["changes"] if "route_mtu" in each["set"]] == [1500] * 3 + [0] * 3
    assert told["changes"][3]["set"] == {"from": "*", "to": "*", "mtu": 9000}
    assert all(port["dropped_frames"] == 0 for port in told["measure"]["fabric"]["ports"])
    # Every connection that went on would still have the old MSS.
    assert found["kept"] == []
    after = told["begun_seconds"] + found["ended_seconds"] + 0.1
    lifetimes = told["workload"]["lifetimes"]
    assert {each["mss_bytes"][-1] for each in lifetimes if each["last_seconds"] > after} == {8948}
    assert {each["mss_bytes"][-1] for each in lifetimes if each["last_seconds"] < after} == {1448}
    assert all(one["asked_again"] >= 1 for one in told["workload"]["iscsi"]["clients"].values())
    assert all(one["switched"] for one in found["clients"])
    # A response of 8,240 bytes: six frames before and one after, with the request, and an acknowledgement or some.
    for one in found["clients"]:
        before, after = (
            one[when]["packets_per_second"] / one[when]["operations_per_second"] for when in ("before", "after")
        )
        assert before > 6.5
        assert after < 4.5


@marked(NEEDS)
def test_connections_that_are_not_opened_again_keep_the_mss_that_they_were_opened_with(
    rack_agent: Agent, tmp_path: Path
) -> None:
    told, found = switched(rack_agent, tmp_path)
    assert {row["mss_bytes"] for row in told["workload"]["live"]} == {1448}
    assert {(each["host"], each["other"]) for each in found["kept"]} == {
        ("h1", "h3"),
        ("h2", "h3"),
        ("h3", "h1"),
        ("h3", "h2"),
    }
    assert all(each["mss_bytes"] == [1448] and each["seconds"] > 0.1 for each in found["kept"])
    assert all(one["asked_again"] == 0 for one in told["workload"]["iscsi"]["clients"].values())


AFTER_THE_LAST = "logged_in_again"  # a logout needs no second answer
BETWEEN = "asked_again"


@marked(NEEDS)
@pytest.mark.parametrize("operation", ["read", "write"])
@pytest.mark.parametrize(("at", "when"), [("0.8 s", BETWEEN), ("1.3 s", AFTER_THE_LAST)])
def test_every_byte_of_a_connection_that_is_opened_again_is_accounted_for(
    rack_agent: Agent, tmp_path: Path, at: str, when: str, operation: str
) -> None:
    """Requests are sent at 0 and 1 s, and the connections are opened again between the two or between the second and the
    logout; on a busy machine, while one is under way, where bytes are accounted for as well."""
    folder = tmp_path / "out"
    work = {"iscsi": {"operation": operation, "duration": "1.6 s", "size": "16 MiB", "rate": 1}}

    def at_that_moment(runs: Sequence[Run]) -> bool:
        (each,) = runs
        told = record(folder, each)
        for host in fabric_hosts(told):
            all_bytes_are_counted(told, host)
        met = [one["asked_again"] for one in told["workload"]["iscsi"]["clients"].values() if one["logged_in_again"]]
        return any((times > 0) is (when == BETWEEN) for times in met)

    shown(rack_agent, raised(at, work, reopen=True), folder, at_that_moment)


def all_bytes_are_counted(told: Json, host: Json) -> None:
    """To the byte; more only where a request may have been sent twice."""
    messages = told["workload"]["messages"]
    is_server = host["host"] == messages["server"]
    clients = messages["clients"].values() if is_server else [messages["clients"][host["host"]]]
    way = "received" if is_server else "sent"
    counted = sum(int(size) * count for each in clients for size, count in each[way].items())
    loose = sum(each["given_up"][way] for each in clients if "given_up" in each)
    assert counted_exactly(told, host, counted, loose)


def per_operation(client: Json, when: str) -> float:
    return float(client[when]["packets_per_second"] / client[when]["operations_per_second"])


@marked(nfs.NEEDS)
def test_datagrams_of_nfs_become_one_frame_at_once(rack_agent: Agent, tmp_path: Path) -> None:
    """Six fragments before and one after, with the call; nothing has to be opened again."""
    work = {"duration": "2.1 s", "transport": "udp", "operation": "read", "block": "8 KiB", "rate": 100}
    told, found = switched(rack_agent, tmp_path, {"nfs": work})
    assert all(port["giant_frames"] == 0 for port in told["measure"]["fabric"]["ports"])
    for one in found["clients"]:
        assert per_operation(one, "before") > 6.5
        assert per_operation(one, "after") < 2.5


@marked(nfs.NEEDS)
def test_clients_of_nfs_go_on_over_new_connections(rack_agent: Agent, tmp_path: Path) -> None:
    work = {"duration": "2.1 s", "operation": "read", "block": "64 KiB", "rate": 40}
    told, found = switched(rack_agent, tmp_path, {"nfs": work}, reopen=True)
    assert found["kept"] == []
    for one in told["workload"]["nfs"]["clients"].values():
        assert one["reconnected"] >= 1
        assert one["answered"] == one["calls"]
    # 46 segments with data become 8.
    assert all(per_operation(one, "before") > 2 * per_operation(one, "after") for one in found["clients"])


@marked(ceph.NEEDS)
@pytest.mark.soak(1)
def test_a_cluster_goes_on_under_fio_and_its_packets_and_cpu_are_read_before_and_after(
    rack_agent: Agent, tmp_path: Path
) -> None:
    """From 1500 to 9000; in `make soak`, also with the same steps where all have 9000 before."""
    asked = study(
        blocks=1, retries=0, margins={"iops": "5 %"}, factors={"mtu": {"levels": [1500, 9000], "baseline": 1500}},
        testbed={**BED, "hosts": 4, "link": {"rate": "200 Mb/s"}, "links": [{"from": "*", "to": "*", "mtu": "host"}]},
        workloads=[{"ceph": {
            "operation": "mixed", "block": "64 KiB", "rate": 40, "replication": 2, "image": "16 MiB",
            "duration": by_length("7 s", "20 s"),
        }}],
        changes=[{"at": "3.5 s", "hosts": "all", "mtu": 9000, "hold": True, "reopen": True}],
    )  # fmt: skip
    ratios: dict[int, float] = {}

    def is_divided(runs: Sequence[Run]) -> bool:
        ratios.update({each.level: ratio for each in runs if (ratio := packets_before_over_after(tmp_path, each))})
        return set(ratios) == {each.level for each in runs}

    chosen = asked if SOAK else alone(asked, mtu=1500)
    judged(lambda: but_for_loads(run(rack_agent, chosen, tmp_path)), tmp_path, is_divided)
    # A published cluster had 4, and not the 6 of the MTUs; of the steps alone nothing is left.
    assert 3 < ratios[1500] < 6
    assert not SOAK or 0.6 < ratios[9000] < 1.6


def packets_before_over_after(folder: Path, each: Run) -> float | None:
    """How many times as many packets an operation took before; None if fio was not there before and after the switch."""
    told = record(folder, each)
    assert all(port["giant_frames"] == 0 for port in told["measure"]["fabric"]["ports"])
    done, found = told["workload"]["ceph"], each.readings["switch"]
    (client,) = found["clients"]
    # fio's own count, block by block.
    assert sum(done["clients"]["h1"]["course"]["answered"]) == done["reads"] + done["writes"]
    assert (client["host"], client["switched"]) == ("h1", True)
    assert [one["host"] for one in found["hosts"]] == ["h1", "h2", "h3", "h4"]
    after = told["begun_seconds"] + found["ended_seconds"]
    late = [one for one in told["workload"]["lifetimes"] if one["first_seconds"] > after]
    assert {one["mss_bytes"][-1] for one in late} <= {8948}
    # All of the small ones are opened again; large ones are left as they are. A machine that holds hosts up holds that up.
    if found["kept"] and each.level != 9000:
        return None
    parts = [one[when] for one in (client, *found["hosts"]) for when in ("before", "after")]
    if None in parts or not (late or each.level == 9000):
        return None
    assert client["before"]["mean_latency_seconds"] > 0 < client["after"]["mean_latency_seconds"]
    assert all(sum(one[when]["cpu_seconds_per_second"] for one in found["hosts"]) > 0 for when in ("before", "after"))
    before, then = (
        sum(one[when]["packets_per_second"] for one in found["hosts"]) / client[when]["operations_per_second"]
        for when in ("before", "after")
    )
    return float(before / then)
