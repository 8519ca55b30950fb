"""Captures of the hosts of a rack, joined: what is inferred against what its ports say that they dropped."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from helpers.real import proven, study
from helpers.taps import Tapped, agreement, dropped, inferred, restamped

from framegauge.agents.pipe import Agent
from framegauge.diagnose import run as diagnosis

pytestmark = pytest.mark.needs("tcpdump")
BED = {"kind": "rack", "topology": "rack", "hosts": 5, "link": {"rate": "200 Mb/s", "buffer": "64 KiB"}}
WITHIN_SECONDS = 0.05  # a host's tap sees an aggregate whole, before its first frame comes to a port
LEAST = 0.999


Tap = Callable[[int, bool], Tapped]


@pytest.fixture(scope="module")
def tapped(rack_agent: Agent, tmp_path_factory: pytest.TempPathFactory) -> Tap:
    """Runs at both MTUs in which four hosts send to one, whose port drops, by family and offloads; each study once."""

    @functools.cache
    def of(family: int, offloads: bool) -> Tapped:
        folder = tmp_path_factory.mktemp("taps")
        bed = Tapped(rack_agent, folder)
        asked = study(
            stream={"size": "8 MB", "repeat": "0 s", "pattern": "many-to-one"}, blocks=1,
            testbed={**BED, "family": family}, factors={"offloads": offloads},
        )  # fmt: skip
        proven(rack_agent, asked, folder / "out", bed)
        assert len(bed.files) == 2
        return bed

    return of


def hops(document: dict[str, Any]) -> list[str]:
    """What hops say besides their drops, for a failure's message."""
    return [
        f"{connection['client']} to {connection['server']}, direction {number}: "
        + str({key: told for key, told in hop.items() if key != "drops" and told})
        for connection in document["joined"]["connections"]
        for number, direction in enumerate(connection["directions"])
        for hop in direction["hops"]
    ]


@pytest.mark.parametrize("offloads", [False, True])
@pytest.mark.parametrize("family", [4, 6])
def test_what_is_inferred_is_what_the_ports_dropped(tapped: Tap, family: int, offloads: bool) -> None:
    bed = tapped(family, offloads)
    counts: Counter[str] = Counter()
    alone: list[str] = []
    for ports, hosts in zip(bed.files, bed.hosts_files, strict=True):
        document = diagnosis.diagnose([], hosts=hosts)
        jsonschema.validate(document, diagnosis.schema())
        truth = dropped(ports)
        payload = max(payload for each in truth.values() for _, payload, _ in each)
        agrees, odd = agreement(truth, inferred(document, payload), WITHIN_SECONDS)
        counts += agrees
        alone += odd + (hops(document) if odd else [])
        # Namespaces share a clock: no host's is ahead, within what is said.
        for tap in document["joined"]["taps"]:
            assert abs(tap["clock"]["offset_seconds"]) <= tap["clock"]["uncertainty_seconds"], tap
    print(family, offloads, dict(counts))
    assert counts["both"] > 100
    assert counts["both"] >= LEAST * (counts["both"] + counts["said only"]), (counts, alone)
    assert counts["both"] >= LEAST * (counts["both"] + counts["true only"]), (counts, alone)


def test_the_ports_are_taps_themselves_and_say_where_it_was(tapped: Tap) -> None:
    bed = tapped(4, False)
    for ports, hosts in zip(bed.files, bed.hosts_files, strict=True):
        document = diagnosis.diagnose([ports], hosts=hosts)
        jsonschema.validate(document, diagnosis.schema())
        names = {tap["tap"]: tap["name"] for tap in document["joined"]["taps"]}
        places: Counter[tuple[Any, ...]] = Counter()
        for connection in document["joined"]["connections"]:
            for direction in connection["directions"]:
                for hop in direction["hops"]:
                    one, other = (names[tap] for tap in hop["between"])
                    for each in hop["drops"]:
                        places[one, other, names.get(each["dropped_at"])] += each["packets"]
        truth = sum(len(each) for each in dropped(ports).values())
        (port,) = {where for _, _, where in places if where is not None}
        at_port = port.removesuffix(" dropped")
        assert places[f"{at_port} in", f"{at_port} out", port] >= LEAST * truth, (places, truth)
        assert sum(places.values()) <= truth / LEAST, (places, truth)


def test_a_clock_that_is_wrong_changes_no_loss_and_is_found(tapped: Tap, tmp_path: Path) -> None:
    bed = tapped(4, True)
    hosts = bed.hosts_files[0]
    right = diagnosis.diagnose([], hosts=hosts)
    receiver = max(hosts, key=lambda name: hosts[name].stat().st_size)
    # The sender that is done last: one with more than its share may be done before there is a middle.
    lasting = {each["file"]: each["seconds"] for each in right["captures"]}
    other = max((name for name in hosts if name != receiver), key=lambda name: lasting[str(hosts[name])])
    half = lasting[str(hosts[other])] / 2
    for number, (offset, drift, step) in enumerate([(10.0, 0.0, 0.0), (-3.0, 1e-4, 0.0), (0.1, -5e-5, 0.25)]):

        def ahead(at: float, offset: float = offset, drift: float = drift, step: float = step) -> float:
            return offset + drift * at + (step if at > half else 0.0)

        file = restamped(hosts[receiver], tmp_path / f"{number}.pcap", ahead)
        # The first tap is the reference: a sender's.
        found = diagnosis.diagnose([], hosts={other: hosts[other], receiver: file})
        tap = next(tap for tap in found["joined"]["taps"] if tap["name"] == receiver)
        pieces = tap["clock"]["pieces"]
        for piece, expected in zip((pieces[0], pieces[-1]), (offset, offset + step), strict=True):
            # Drift counts from the first packet, wherever the piece begins.
            slack = piece["uncertainty_seconds"] + abs(drift) * 2 * half
            assert abs(piece["offset_seconds"] - expected) <= slack, (piece, expected)
            assert piece["uncertainty_seconds"] < 0.01
        assert len(pieces) >= 2 or step == 0.0
        same = [
            [(each["begin"], each["end"]) for each in hop["drops"]]
            for document in (found, diagnosis.diagnose([], hosts={name: hosts[name] for name in (other, receiver)}))
            for connection in document["joined"]["connections"]
            for direction in connection["directions"]
            for hop in direction["hops"]
        ]
        middle = len(same) // 2
        assert same[:middle] == same[middle:]
