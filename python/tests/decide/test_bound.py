"""What the load as it is can gain at most, in the answer: from readings whose estimate is known in closed form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from decide.test_steps import Decision, Hosts
from estimate.test_document import WIREGUARD, host, stranger, way, with_strangers
from helpers.schemas import conforms
from summary.test_sentence import BETTER, UNDECIDED, one, summary

from framegauge.check.plan import Member
from framegauge.decide import judge, page
from framegauge.decide.judge import Brings
from framegauge.decide.places import Say
from framegauge.errors import AgentError
from framegauge.estimate.document import estimate
from framegauge.rollout.preflight import schema
from framegauge.testbeds.base import Host, Json
from framegauge.testbeds.fake.testbed import Answered

SMALL = host(way({(0, 100): 10_000}), way({(0, 100): 10_000}))  # each message is one small packet, whatever the MTU is
BULK = host(way({(12_000, 10): 1}), way(acknowledgements=6000), busy=10.0, nodelay=False)

FINDING = {
    "where": "alpha/eth0", "what": "management", "severity": "refused", "found": "the ssh session", "expected": "another",
    "remedy": "name another interface, or force it",
}  # fmt: skip
CHANGE = {
    "host": "alpha", "owner": "netplan", "path": "/etc/netplan/50.yaml", "whole": True, "mode": "600", "diff": "-\n+\n",
    "reload": [["netplan", "apply"]], "undo": {"diff": "+\n-\n", "reload": [["netplan", "apply"]]},
}  # fmt: skip
PREFLIGHT: Json = {
    "schema": 1, "target_mtu": 9000, "scope": "subnets", "lease_seconds": 60.0, "forced": [], "verdict": "refused",
    "hosts": [], "findings": [FINDING | {"severity": "note", "where": "beta/eth0"}, FINDING], "changes": [CHANGE],
}  # fmt: skip


def bound(readings: dict[str, Any]) -> judge.Bound | None:
    return judge.bound_of(estimate({"alpha": readings}, [4200, 9000]), 9000)


def test_a_load_of_small_messages_gains_nothing() -> None:
    found = bound(SMALL)
    assert found is not None
    assert found.is_little
    assert "at most 0 % of goodput" in found.text
    assert judge.benefit_of(None, "no study was made", found).brings is Brings.NOTHING
    # A study that could not tell is no more than none; one that found something is.
    assert judge.benefit_of(summary(one(UNDECIDED)), "", found).brings is Brings.NOTHING
    assert judge.benefit_of(summary(one(BETTER)), "", found).brings is Brings.HELPS


def test_a_load_of_bulk_may_gain_and_the_bound_is_rounded_up() -> None:
    found = bound(BULK)
    assert found is not None
    assert not found.is_little
    told = judge.benefit_of(None, "no study was made", found)
    assert told.brings is Brings.NOT_MEASURED
    assert found.text in told.text
    total = next(each for each in estimate({"alpha": BULK}, [4200, 9000])["total"] if each["mtu"] == 9000)
    shown = float(found.text.partition("at most ")[2].partition(" %")[0])
    assert 0 <= shown - 100 * total["goodput"]["at_most"] < 0.1 + 1e-9


def test_no_load_is_no_bound() -> None:
    assert bound(host(way(), way())) is None
    login = host(way({(0, 100): 3000}), way({(0, 100): 3000}))
    assert bound(login) is None
    lines = list(judge.load_lines(estimate({"alpha": login}, [4200, 9000])))
    assert lines[-1] == "MTU 9000: too little load to judge, fewer than 1000 packets per second"
    assert judge.bound_of(None, 9000) is None
    assert list(judge.load_lines(None)) == []


class Loaded(Hosts):
    """Hosts with a load; `refused`: by whom reading is refused."""

    def __init__(self, readings: dict[str, Any], refused: str = "") -> None:
        super().__init__("changes are not allowed without --allow-changes")
        self.readings, self.refused, self.read, self.surveys = readings, refused, 0, 0

    built = None

    def preflight(self, interfaces: Mapping[str, str], target_mtu: int, say: Say) -> Json:
        assert set(interfaces) == set(self.network.names)
        self.surveys += 1
        return PREFLIGHT

    @contextmanager
    def hosts(self, say: Say) -> Iterator[list[Member]]:
        yield [Member(Host(each.name, "", self._reading(each))) for each in self.members()]

    def _reading(self, member: Member) -> Any:
        agent, name = member.host.agent, member.name
        begin = agent.begin

        def asked(method: str, params: Any = None, on_progress: Any = None) -> Any:
            if method == "estimate.begin":
                assert params["interfaces"]
                if name == self.refused:
                    return Answered({}, AgentError(-32004, "it is not allowed", {}))
                return Answered({"interfaces": params["interfaces"], "sample_error": None}, None)
            if method == "estimate.end":
                self.read += 1
                return Answered(self.readings, None)
            return begin(method, params, on_progress)

        agent.begin = asked  # type: ignore[method-assign, assignment]
        return agent


def test_hosts_that_are_only_read_get_an_answer_from_their_load(tmp_path: Path) -> None:
    place = Loaded(SMALL)
    asked = Decision(tmp_path, place)
    asked.seconds = 0.01
    found = asked.run()
    conforms(found.document, page.schema())
    assert (found.exit_code, found.document["choice"], found.document["brings"]) == (1, "do_not", "nothing")
    assert "at most 0 % of goodput" in found.document["text"]
    asked.run()
    assert (place.read, place.surveys) == (2, 1)  # of each host once, of all once


def test_what_stands_against_the_change_is_a_risk_and_beside_the_answer(tmp_path: Path) -> None:
    conforms(PREFLIGHT, schema.json_schema())
    asked = Decision(tmp_path, Loaded(BULK))
    asked.seconds = 0.01
    document = asked.run().document
    assert "A roll-out is refused because of management (alpha/eth0)" in document["beside"]
    risks = next(each for each in document["sections"] if each["name"] == "risks")
    said = [line["text"] for line in risks["lines"]]
    assert "alpha/eth0: found the ssh session, expected another: name another interface, or force it" in said
    assert "The change lasts only with 1 more in files of netplan (preflight.json)" in said
    assert not any("beta/eth0" in line for line in said)


def test_sockets_that_may_stall_are_risks(tmp_path: Path) -> None:
    readings = host(way({(1, 500): 100}), way(acknowledgements=50), nodelay=False)
    asked = Decision(tmp_path, Loaded(readings))
    asked.seconds = 0.01
    document = asked.run().document
    risks = next(each for each in document["sections"] if each["name"] == "risks")
    assert "Nagle's algorithm may stall 1 socket of server on alpha" in [line["text"] for line in risks["lines"]]


def test_hosts_that_refuse_to_be_read_are_no_end(tmp_path: Path) -> None:
    asked = Decision(tmp_path, Loaded(SMALL, refused="beta"))
    asked.seconds = 0.01
    document = asked.run().document
    assert document["choice"] == "cannot_tell"
    left_out = {each["name"]: each["left_out"] for each in document["steps"]}
    assert left_out["estimate"].startswith("beta: it is not allowed")
    assert not asked.folder.has("estimate")


def test_opaque_traffic_is_named_and_no_reason_against_a_change() -> None:
    """A tunnel that encrypts: nothing bounds what it gains, and the page says what it is."""
    tunnel = stranger("wireguard", 51_820, (30_000, 1500), (5000, 96), **WIREGUARD)
    document = estimate({"alpha": with_strangers(tunnel)}, [4200, 9000])
    bound = judge.bound_of(document, 9000)
    assert bound is not None
    assert not bound.is_little
    assert "an unknown share of goodput" in bound.text
    lines = list(judge.load_lines(document))
    assert lines[-1] == (
        "alpha, eth0: unknown what they bring to 100% WireGuard on UDP port 51820, which fits wireguard over IPv4: outer "
        "1500 = inner 1440 + 60"
    )
