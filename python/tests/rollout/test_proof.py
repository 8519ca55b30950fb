"""What a check says of the hosts of a roll-out; known answers."""

import pytest
from hypothesis import given, strategies as st

from framegauge.rollout.proof import groups, judged, merged, neighbours, new_connections


def document(pairs, errors=()):
    """`pairs`: (source, destination, verdict) of IPv4."""
    names = sorted({name for pair in pairs for name in pair[:2]} | {name for name, _ in errors})
    return {
        "verdict": "", "seconds": 0.0, "findings": [],
        "hosts": [{"name": name, "error": dict(errors).get(name)} for name in names],
        "pairs": [
            {
                "source": one, "destination": other, "family": 4, "verdict": verdict,
                "source_address": f"10.0.0.{one}", "destination_address": f"10.0.0.{other}",
                "path_mtu_bytes": 1500 if verdict == "black_hole" else None,
                "tcp": {"connected": True, "announced_mss_bytes": 8960, "peer_announced_mss_bytes": 1460},
            }
            for one, other, verdict in pairs
        ],
    }  # fmt: skip


def test_only_both_ways_are_a_pass():
    good = [("a", "b", "carries_target"), ("b", "a", "carries_target")]
    proof = judged(document([*good, ("a", "c", "carries_target"), ("c", "a", "black_hole")]), 9000)
    assert proof.passed == {"a": 1, "b": 1, "c": 0}
    assert proof.faults == ("c to a (IPv4): black hole above 1500 bytes, expected 9000 bytes to pass",)
    assert proof.weak(1) == ["c"]
    assert not proof.is_whole
    assert judged(document(good), 9000).is_whole


def test_one_way_that_was_not_probed_is_no_pass():
    assert judged(document([("a", "b", "carries_target")]), 9000).passed == {"a": 0, "b": 0}


def test_what_is_not_known_is_neither():
    proof = judged(document([("a", "b", "unknown"), ("b", "a", "carries_target")], [("a", "no answer")]), 9000)
    assert proof.faults == ()
    assert proof.unknown == ("a to b (IPv4): unknown, expected 9000 bytes to pass", "a: no answer")
    assert proof.passed == {"a": 0, "b": 0}


def test_new_connections_are_to_announce_what_their_hosts_allow():
    proof = judged(document([("a", "b", "carries_target")]), 9000)
    assert new_connections(proof, lambda _name, _address: 9000) == [
        "a to b (IPv4): b announced an MSS of 1460 bytes, expected 8960"
    ]
    assert (
        new_connections(proof, lambda name, address: {("a", "10.0.0.b"): 9000, ("b", "10.0.0.a"): 1500}[name, address])
        == []
    )


@given(st.integers(2, 70), st.integers(1, 8), st.integers(0, 100))
def test_every_host_has_as_many_neighbours_as_are_needed(count, needed, turn):
    names = [f"h{number}" for number in range(count)]
    pairs = neighbours(names, needed, turn)
    for name in names:
        assert len([pair for pair in pairs if name in pair]) >= min(needed, count - 1)


@pytest.mark.parametrize("count", [8, 9, 20])
def test_in_turns_every_pair_is_met(count):
    names = [f"h{number}" for number in range(count)]
    met = {pair for turn in range(count) for pair in neighbours(names, 3, turn)}
    assert len(met) == count * (count - 1) // 2


def test_behind_a_router_only_what_is_sent_there_is_to_pass():
    near = document([("a", "b", "carries_target"), ("b", "a", "carries_target")], [("c", None)])
    far = document([("a", "c", "carries_target"), ("c", "a", "black_hole")], [("b", None)])
    sizes = {("a", "b", 4): 9000, ("b", "a", 4): 9000, ("a", "c", 4): 1500, ("c", "a", 4): 1500}
    proof = judged(merged([near, far]), 9000, sizes)
    assert proof.passed == {"a": 1, "b": 1, "c": 0}
    assert proof.faults == ("c to a (IPv4): black hole above 1500 bytes, expected 1500 bytes to pass",)
    assert proof.document["verdict"] == "fault"
    assert [len(each["pairs"]) for each in (near, far)] == [2, 2]
    # Small packets to others prove nothing of a host's large ones.
    assert proof.weak(3) == ["c"]


def test_hosts_that_send_large_packets_to_each_other_are_a_group():
    assert groups(["a", "b", "c", "d", "e"], [("d", "b"), ("a", "e"), ("e", "a")]) == [["a", "e"], ["b", "d"], ["c"]]
    assert groups(["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a")]) == [["a", "b", "c"]]
    assert groups(["a"], []) == [["a"]]


def test_a_host_that_fails_in_one_of_several_checks_has_failed():
    good = [("a", "b", "carries_target"), ("b", "a", "carries_target")]
    for documents in (
        [document(good, [("b", "lost")]), document(good)],
        [document(good), document(good, [("b", "lost")])],
    ):
        proof = judged(merged(documents), 9000)
        assert proof.unknown == ("b: lost",)
        assert proof.document["verdict"] == "could_not_tell"
