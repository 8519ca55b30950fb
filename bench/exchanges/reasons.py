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

# Lines of the page, about drawn cases: what is known of those that differ, of the first 320 seeds.
DRAWN_REASONS: Sequence[str] = (
    "Without the memory of cut pieces, and without writers that sleep, the model sent the same in 295 of them.",
    "",
    "Many cases differ by time alone: they agree once the model's hosts take up to 30 or 100 us to handle a",
    "frame, or its links have the RTT that the kernels' handshakes show. They are 51 of 88, and 7 of the 16 in",
    "which something else is sent (`python -m bench.exchanges.varied --seeds 320 --kernels DIR`).",
    "Acknowledgements and the host's shaper have the same period: one that comes a few microseconds before the",
    "shaper lets the next piece go, or after it, decides how large a super-segment is, and its end what is",
    "acknowledged by itself. The kernel's shaper counts pieces that it cuts without preamble, FCS and gap",
    "(`tbf_segment` sets their length anew): its periods are 1.5 % shorter than the link's.",
    "",
    "The others in which something else is sent:",
    "",
    "| kind | seeds | cause |",
    "| --- | --- | --- |",
    "| MTU 9000: a super-segment ends within a segment, or not | 67, 184, 224, 303 | likely how often a waiting buffer "
    "has grown before it is sent (`tcp_grow_skb`, once for each try) |",
    "| timers of both ends within a tick | 70, 276 | whether the client's timeout comes before the answer that the "
    "server's tail-loss probe brings again |",
    "| the same is sent with slower hosts | 97, 114, 262 | time; acknowledgements differ still |",
    "",
    "Open are also a cwnd that differs by one to three where all else agrees (where HyStart ends slow start), and when",
    "a delayed acknowledgement goes out at MTU 9000.",
)
