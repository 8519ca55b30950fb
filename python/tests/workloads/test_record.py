"""What a run's record has of its workload: the keys that every one has, and its own."""

from __future__ import annotations

import json
from typing import NotRequired, get_origin, get_type_hints

import pytest
from helpers.support import STUDY

from framegauge.record import Record
from framegauge.study import file as study_file
from framegauge.workloads.command import CommandRecord
from framegauge.workloads.live import Seen

OWN = {
    "stream: {size: 10 MB}": {
        "active_seconds", "alone_bytes", "handshake_seconds", "last_start_seconds", "nics", "offered_bits_per_second",
        "retransmits", "runs", "served", "sizes", "sockets",
    },
    "rr: {duration: 0.1 s}": {"active_seconds", "clients", "nodelay", "not_measured", "only_bulk", "served"},
    "mixed: {}": {
        "active_seconds", "asked", "client", "nodelay", "not_measured", "only_bulk", "retransmits", "sent", "served",
        "window_seconds",
    },
    "iperf3: {duration: 1 s}": {"active_seconds", "clients", "retransmits"},
    "ftp: {size: 1 MB}": {"active_seconds", "fetched"},
}  # fmt: skip
EVERY = {
    "senders", "receivers", "received_bytes", "bytes", "transfer_bytes", "congestion_control", "srtt_median_seconds",
    "mean_segment_payload_bytes", "refused",
}  # fmt: skip


@pytest.mark.parametrize("workload", OWN)
def test_a_run_on_disk_has_these_keys_and_no_others(workload, execute, tmp_path):
    study = study_file.parse(STUDY.replace("stream: {size: 10 MB}", workload), "x").model_copy(update={"blocks": 1})
    execute(study)
    files = sorted((tmp_path / "out" / "runs").glob("*/record.json"))
    assert files
    for file in files:
        assert set(json.loads(file.read_text())["workload"]) == EVERY | OWN[workload]


def test_the_type_says_which_keys_every_workload_has():
    hints = get_type_hints(Record, include_extras=True)
    assert {name for name, hint in hints.items() if get_origin(hint) is not NotRequired} == EVERY


def test_what_sockets_tell_is_in_the_record_of_commands_under_the_same_types():
    """Where the two are joined, the type checker cannot compare them."""
    assert get_type_hints(Seen).items() <= get_type_hints(CommandRecord).items()
