"""A published figure is run again on the rack: its study's results are in the folder, and the page is of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from framegauge.cli.main import main

DOCUMENT = """\
document: mine
title: A paper of mine
source: nowhere
set_up: two hosts
studies: {pair: {testbeds: [rack]}}
figures:
  - id: mine-1
    place: pair
    case: 100 kB
    quantity: goodput
    published: about +5 %
    ratio: [1.03, 1.07]
    read: {study: pair, level: 9000}
"""
PAIR = """\
question: Does it?
testbed: {kind: rack, topology: pair, link: {rate: 10 Mb/s}}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
workloads:
  - stream: {size: 100 kB}
blocks: 2
stop: blocks
control: false
margins: {goodput: 1 %}
"""


def test_a_figure_is_run_again_on_the_rack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pair.yaml").write_text(PAIR)
    (tmp_path / "document.yaml").write_text(DOCUMENT)
    out = tmp_path / "out"
    ended = main(["reproduce", "--document", str(tmp_path), "--out", str(out), "--json"])
    captured = capsys.readouterr()
    assert "mine: 1 study on the rack, at most" in captured.err
    (figure,) = json.loads(captured.out)["documents"][0]["figures"]
    state = json.loads((out / "reproduction.json").read_text())
    if not state["over"]:
        # Only other work of the machine may have kept it from that, and the figure says so.
        assert figure["status"] == "not run"
        assert figure["outcomes"]["rack"]["why"].startswith("too busy: ")
        assert ended == 3
        return
    assert state["over"] == ["rack/mine/pair"]
    runs = (out / "rack/mine-pair/runs.jsonl").read_text().splitlines()
    assert {json.loads(line)["level"] for line in runs} == {1500, 9000}
    # What two blocks tell is not for this test to say.
    assert figure["status"] != "not run"
    assert ended in (0, 3)
