"""Which runs are for training, for validation and for the test: fixed by their seed, so that nobody can choose."""

from __future__ import annotations

# Numbers that neither the thresholds of `framegauge diagnose` nor its tests were made with.
FIRST = 10_001
SPLITS = ("train", "validation", "test")
RULE = (
    "The number of a run is its seed within its scene. number mod 5: 1, 2, 3 train; 4 validation; 0 test. "
    "So each scene is in each split in the same proportion, and the three taps of a run are in one split."
)


def split(number: int) -> str:
    """The split of the runs of this number."""
    return {4: "validation", 0: "test"}.get(number % 5, "train")
