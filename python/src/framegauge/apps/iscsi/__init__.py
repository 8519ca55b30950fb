"""A disk over iSCSI: its store on the target, and clients that read and write it (workload `iscsi`)."""

__all__ = [
    "HEADER_BYTES", "LARGEST_SEGMENT_BYTES", "MOST_DEPTH", "PAGE_BYTES", "PORT", "SECTOR_BYTES", "TARGET",
]  # fmt: skip

SECTOR_BYTES = 512  # of the disk; an address on it is a number of these
PAGE_BYTES = 4096  # of the store, each of which begins with its number
MOST_DEPTH = 128  # requests under way that tgt takes from a session (MaxQueueCmd)
HEADER_BYTES = 48  # of a PDU (RFC 7143 section 11.2.1), without digests
LARGEST_SEGMENT_BYTES = 262_144  # of data in a PDU
PORT = 3260
TARGET = "iqn.2026-01.net.framegauge:disk"
