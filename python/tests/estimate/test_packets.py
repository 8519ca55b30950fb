"""Packets that are left when the MTU is raised: known answers, and messages that are drawn and cut at both sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, strategies as st

from framegauge.estimate.packets import Way, predict, runs

OLD, NEW = 1448, 8948
NOTHING = Way({})
# Sizes of messages, of which none is whole segments to the byte.
MESSAGES = st.lists(st.integers(1, 200_000).filter(lambda size: size % OLD), min_size=1, max_size=30)


def cut(messages: Sequence[int], segment: int) -> list[int]:
    """The payloads of the packets of messages that are written one by one."""
    return [min(segment, size - begun) for size in messages for begun in range(0, size, segment)]


def way(payloads: Sequence[int], acknowledgements: int = 0) -> Way:
    return Way({**Counter(payloads), **({0: acknowledgements} if acknowledgements else {})})


def test_full_segments_of_one_long_transfer_become_as_few_as_their_sizes_say() -> None:
    found = predict(Way({OLD: 894_800}), NOTHING, OLD, NEW)
    assert found.after == pytest.approx(144_800, rel=1e-5)
    assert found.ratio == pytest.approx(NEW / OLD, rel=1e-5)


def test_small_packets_stay() -> None:
    found = predict(Way({100: 500}), Way({200: 500}), OLD, NEW)
    assert found.least == found.after == found.most == 1000
    assert found.ratio == 1


def test_a_mixed_load_has_a_quarter_of_the_packets_and_not_a_sixth() -> None:
    """Messages of 64 KiB, of which each is answered by a small one, and acknowledged at every second segment."""
    there = [65_536 + 370] * 100
    old, new = cut(there, OLD), cut(there, NEW)
    before = predict(way(old), Way({200: 100, 0: len(old) // 2}), OLD, NEW)
    came = len(new) + 100 + len(new) // 2
    assert before.before == 4600 + 100 + 2300
    assert came == 800 + 100 + 400
    assert before.after == pytest.approx(came, rel=0.05)
    assert before.ratio < 0.9 * NEW / OLD


@pytest.mark.parametrize(("before", "rate"), [(55, 1 / 2), (44, 0.45), (110, 0.75), (0, 0.0)])
def test_acknowledgements_are_between_their_rate_before_and_one_for_two_segments(before: int, rate: float) -> None:
    data = predict(Way({OLD: 100, 300: 10}), NOTHING, OLD, NEW)
    found = predict(Way({OLD: 100, 300: 10}), Way({0: before}), OLD, NEW)
    assert found.after == pytest.approx((1 + rate) * data.after)
    # The last segments of ten messages may be acknowledged with what is sent next.
    assert found.least == pytest.approx(data.least + min(before / 110 * data.least, (data.least - 10) / 2))
    assert found.most == pytest.approx((1 + max(before / 110, 1 / 2 if before else 0)) * data.most)


def test_acknowledgements_of_messages_of_one_packet_stay() -> None:
    found = predict(Way({100: 500}), Way({0: 450}), OLD, NEW)
    assert found.least == found.after == found.most == 950


def test_an_acknowledgement_that_goes_with_the_next_request_is_within_the_bounds() -> None:
    """200 blocks of 8 KiB over iSCSI on the rack: six segments each at 1500, of which each was acknowledged at once; one
    at 9000, and few acknowledgements by themselves. Packets at both MTUs are those of the switch."""
    request, response = 48, 8240
    found = predict(Way({request: 200, 0: 1285}), way(cut([response] * 200, OLD), 200), OLD, NEW)
    assert found.before == 2885
    assert found.least <= 636 <= found.most


def test_what_a_sample_has_told_of_acknowledgements_is_taken() -> None:
    """600 acknowledgements of 200 blocks, of which none is left with segments of NEW bytes, or all of those of ends."""
    there = Way({48: 200, 0: 600}, left={NEW: (0.0, 0.0, 1 / 3)})
    payloads = cut([8240] * 200, OLD)
    found = predict(there, Way(Counter(payloads), runs(payloads, OLD)), OLD, NEW)
    assert (found.after, found.least, found.most) == pytest.approx((400, 400, 600))
    # Of other sizes it has told nothing.
    blind = predict(Way({48: 200, 0: 600}), way(payloads), OLD, NEW - 1)
    assert predict(there, way(payloads), OLD, NEW - 1) == blind


def test_answers_to_parts_of_a_message_may_go_with_one_another() -> None:
    """Pipelines of twelve segments to a server that answers what it has read: twelve small answers each, at least two
    of which are left, or one."""
    there = Way({OLD: 1100, 700: 100}, {(11, 700): 100})
    back = Way({5: 1200}, {(0, 5): 1200}, merged={NEW: (1000, 1100)})
    found = predict(there, back, OLD, NEW)
    assert (found.least, found.after, found.most) == (200 + 100, 200 + 200, 200 + 1200)
    counted = predict(Way(there.payloads), Way(back.payloads, merged=back.merged), OLD, NEW)
    assert counted.least <= 300
    assert counted.most >= 1400
    # Of other sizes nothing was told.
    assert predict(there, back, OLD, NEW - 1).least == 200 + 1200


def test_small_answers_that_are_acknowledged_together_may_have_fewer_acknowledgements() -> None:
    """50 answers to each request of two segments, acknowledged about two at a time: that is a matter of time."""
    small = Way({100: 5000}, {(0, 100): 5000})
    several = predict(Way({OLD: 100, 552: 100, 0: 2000}, left={NEW: (1.0, 1.0, 1.0)}), small, OLD, NEW)
    assert (several.least, several.most) == (5000 + 100, 5000 + 200_000 // NEW + 100 + 2000)
    one = predict(Way({60: 100, 0: 2000}, left={NEW: (1.0, 1.0, 1.0)}), small, OLD, NEW)
    assert one.least == one.most == 5000 + 100 + 2000  # requests of one segment come as they did


# Of a Ceph cluster with three copies and 60 blocks per second, half of them reads, on the rack: packets by payload at
# MTU 1500, summed over all hosts (small ones rounded to their mean), acknowledgements, and what came at MTU 9000.
@pytest.mark.parametrize(
    ("payloads", "acknowledgements", "came"),
    [
        ({OLD: 16_386, 350: 1208}, 6938, 5439),  # blocks of 64 KiB
        ({OLD: 1236, 160: 1179}, 1066, 1733),  # of 4 KiB
    ],
)
def test_what_came_of_a_cluster_is_foreseen_within_five_per_cent(
    payloads: dict[int, int], acknowledgements: int, came: int
) -> None:
    found = predict(Way(payloads), Way({0: acknowledgements}), OLD, NEW)
    assert found.after == pytest.approx(came, rel=0.05)
    assert found.least < came < found.most


@given(MESSAGES, MESSAGES)
def test_what_is_left_of_messages_is_between_the_bounds(there: list[int], back: list[int]) -> None:
    found = predict(way(cut(there, OLD)), way(cut(back, OLD)), OLD, NEW)
    came = len(cut(there, NEW)) + len(cut(back, NEW))
    assert found.least <= came <= found.most
    assert found.least <= found.after <= found.most
    low, high = found.ratio_bounds
    assert 1 <= low <= found.ratio <= high


@given(MESSAGES)
def test_the_order_of_packets_tells_exactly_what_is_left(messages: list[int]) -> None:
    payloads = cut(messages, OLD)
    known = Way(Counter(payloads), runs(payloads, OLD))
    found = predict(known, NOTHING, OLD, NEW)
    assert found.least == found.after == found.most == len(cut(messages, NEW))


@given(MESSAGES, st.integers(2, 9))
def test_several_times_the_load_has_as_many_times_the_packets(messages: list[int], times: int) -> None:
    one = predict(way(cut(messages, OLD)), NOTHING, OLD, NEW)
    all_ = predict(way(cut(messages * times, OLD)), NOTHING, OLD, NEW)
    assume(one.least < one.after < one.most)
    assert all_.after == pytest.approx(times * one.after, rel=0.02)


@given(MESSAGES)
def test_equal_segments_change_nothing_that_a_capture_knows(messages: list[int]) -> None:
    payloads = cut(messages, OLD)
    found = predict(Way(Counter(payloads), runs(payloads, OLD)), NOTHING, OLD, OLD)
    assert found.after == found.before


@given(st.lists(st.integers(1, OLD), min_size=1, max_size=200), st.integers(0, 50))
def test_counts_alone_have_the_packets_and_bytes_of_the_histogram(payloads: list[int], empty: int) -> None:
    full = payloads.count(OLD)
    found = Way.counted(len(payloads) + empty, sum(payloads), full, OLD, empty)
    assert found.packets == len(payloads) + empty
    assert found.acknowledgements == empty
    assert sum(size * count for size, count in found.payloads.items()) == sum(payloads)
    assert found.payloads.get(OLD, 0) == full


def test_counts_of_full_segments_alone_keep_the_acknowledgements() -> None:
    assert Way.counted(15, 10 * OLD, 10, OLD, 5).payloads == {OLD: 10, 0: 5}


@pytest.mark.parametrize(
    ("counts", "segment"), [((10, 100, 11, 10), 10), ((10, 5, 0, 0), 10), ((10, 95, 0, 0), 10), ((1, 0, 0, 2), 10)]
)
def test_counts_that_cannot_be_are_refused(counts: tuple[int, int, int, int], segment: int) -> None:
    packets, payload, full, empty = counts
    with pytest.raises(ValueError, match="expected as many bytes as they can carry"):
        Way.counted(packets, payload, full, segment, empty)


def test_a_packet_beyond_a_segment_and_no_packet_are_refused() -> None:
    with pytest.raises(ValueError, match="found a packet of 1449 bytes"):
        predict(Way({1449: 1}), NOTHING, OLD, NEW)
    with pytest.raises(ValueError, match="found 0 packets"):
        predict(NOTHING, NOTHING, OLD, NEW)
