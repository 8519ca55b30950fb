"""Why kernel and model differ, case by case: as far as it is known, and what is likely or open where it is not."""

from __future__ import annotations

from collections.abc import Mapping

_READS = (
    "The reader's program wakes up when both segments of a hole are there, the model's at each. What is read in a "
    "round trip is measured then, and by it the buffer grows (`tcp_rcv_space_adjust`); each segment that opens the "
    "window further is acknowledged at once (`tcp_grow_window`)."
)
_LIKELY_READS = "Likely when the reader's program wakes up, as for segments 3 to 4."
_PUSHED = (
    "A segment has PSH where half of the largest window was written (`forced_push`), and a reader that gets PSH "
    "acknowledges at once. At which segment that is depends on how many leave while the program still writes."
)
_CLOSED = (
    "The reader wakes up at the same time as the probe of the last segment comes: one acknowledgement more, or fewer, "
    "and cwnd by it."
)
_HOLE = "Open: one acknowledgement more, or fewer, is sent at once around the time at which the hole is filled."
_MARKS = (
    "The kernel sends segment 26, with which a buffer of its socket ends, by itself and with PSH, the model 26 and 27 "
    "together. Which buffer ends there depends on how many segments leave while the program still writes."
)

REASONS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "segment 1 of 30 lost", "segment 10 of 30 lost", "segments 1 to 10 lost",
            "first segment and its resend lost",
        ),
        _HOLE,
    ),
    "segments 3 to 4 lost": _READS,
    **dict.fromkeys(("segments 5 to 7 lost", "segments 2 to 10 lost"), _PUSHED),
    **dict.fromkeys(
        ("segment 2 of 30 lost", "resend lost again", "RTT 50 ms, nothing lost", "RTT 1 ms, last segment lost"),
        _LIKELY_READS,
    ),
    **{f"MTU 9000, segment {number} of 20 lost": _PUSHED for number in (1, 3, 15, 20)},
    "MTU 9000, nothing lost": _PUSHED,
    **dict.fromkeys(
        ("reader pauses until the window is closed", "reader pauses for 1 s with the window closed"), _CLOSED
    ),
    **dict.fromkeys(
        (
            "ECN, segment 5 marked", "ECN, segments 5 and 6 marked", "ECN, two windows marked",
            "ECN, one marked, one lost",
        ),
        _MARKS,
    ),
}  # fmt: skip
