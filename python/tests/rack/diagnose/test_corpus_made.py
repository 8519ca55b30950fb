"""A corpus of two runs, made for real: its files, books, schema and sockets agree, and a second call has nothing to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from helpers.support import ROOT, bench

manifest = bench("corpus.manifest")
# A loss that no busy machine hides, and hosts behind a router; both are short.
SCENES = "one loss,translated Windows"
MAKING_SECONDS = 240.0
# A run that a busy machine held up is not kept: nothing is asserted of what is missing.
MADE, NOT_ALL_MADE = 0, 1


def corpus(verb: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench.corpus", verb, str(folder), *more],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=MAKING_SECONDS, check=False,
    )  # fmt: skip


def test_a_corpus_holds_what_it_says_and_goes_on_where_it_ended(tmp_path: Path) -> None:
    asked = ("--runs", "2", "--kind", SCENES, "--first", "10005", "--workers", "1")
    made = corpus("make", tmp_path, *asked)
    assert made.returncode in (MADE, NOT_ALL_MADE), made.stdout
    checked = corpus("check", tmp_path)
    assert checked.returncode == 0, checked.stdout
    truths = list(manifest.truths(tmp_path))
    assert len(truths) == 2 or made.returncode == NOT_ALL_MADE
    for truth in truths:
        kept = {path.name for path in (tmp_path / "runs" / truth["run"]).iterdir()}
        assert kept == {
            "sender.pcapng.gz", "switch.pcapng.gz", "receiver.pcapng.gz", "truth.json", "kernel.json", "wire.jsonl.gz",
        }  # fmt: skip
        lost = truth["conservation"]["went"].get("lost_packets", 0)
        assert bool(lost) == (truth["scene"] == "one loss")
        if truth["scene"] == "one loss":
            assert {item["cause"] for item in truth["captures"]["sender"]["must"]} == {"fast_retransmit"}
        else:
            names = {each["ends"]["sender"][0] != each["ends"]["receiver"][0] for each in truth["connections"]}
            assert names == {True}
    if made.returncode == MADE:
        before = json.loads((tmp_path / "manifest.json").read_bytes())
        again = corpus("make", tmp_path, *asked)
        assert "0 are to be made" in again.stdout
        assert json.loads((tmp_path / "manifest.json").read_bytes()) == before
