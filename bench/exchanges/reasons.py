"""Why kernel and model differ, case by case: as far as it is known, and what is open where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_WAKES = (
    "When the reader's program wakes up decides whether a segment with PSH is acknowledged by itself "
    "(`tcp_cleanup_rbuf`): the kernel does so on a busy machine, and not on this one."
)
_CLOSED = (
    "The reader wakes up at the same time as the probe of the last segment comes: one acknowledgement more, or fewer, "
    "and cwnd by it."
)
_TICKS = (
    "The late acknowledgement is 1.7 ms older than the newest, which is one or two ticks of the timestamps' clock, by "
    "its phase. Two are more than PAWS bears (`TCP_PAWS_WINDOW`), and the kernel answers what it rejects "
    "(`tcp_send_dupack`)."
)
_WRITES = (
    "On a busy machine at least 2 of 3 runs agreed. Likely how many segments leave while the program still writes."
)

REASONS: Mapping[str, str] = {
    "an acknowledgement held for 8 ms": _TICKS,
    **{f"MTU 9000, segment {number} of 20 lost": _WRITES for number in (1, 3, 15)},
    "MTU 9000, segment 20 of 20 lost": _WAKES,
    "MTU 9000, nothing lost": f"{_WAKES} HyStart then has seen half an RTT of acknowledgements, or not.",
    **dict.fromkeys(
        ("reader pauses until the window is closed", "reader pauses for 1 s with the window closed"), _CLOSED
    ),
}

# Lines of the page, about drawn cases: what is known of those that differ.
DRAWN_REASONS: Sequence[str] = (
    "Part of the cases at MTU 1500 that differ agree once the model's links have an RTT that is up to 1 ms longer:",
    "hosts of the rack take that long, more or less, and a kernel measures it. The size of a super-segment follows",
    "from that (`tcp_tso_autosize`), and with its end what is acknowledged by itself.",
    "",
    "At MTU 9000 a few microseconds decide as well: whether a buffer has grown before the next segment comes, and",
    "whether a delayed acknowledgement ends just before it. Kernels differ there from run to run.",
    "",
    "At 5 ms super-segments are larger than what the bench's shaper lets through at once. The kernel cuts them there,",
    "and counts the memory of each piece against its small queues, which the model does not.",
    "",
    "Open are a cwnd that differs by one or two where all else agrees, and recoveries that are undone.",
)
