"""docs/reference/mtu-faults.md has every kind of finding that the code has, and no other."""

import re

import pytest
from helpers.support import ROOT

from framegauge.check.judgement.findings import CATALOGUE, title

PAGE = (ROOT / "docs/reference/mtu-faults.md").read_text()
SECTIONS = dict(re.findall(r"^### ([a-z_0-9]+)\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE))


def test_code_and_page_have_the_same_kinds_in_the_same_order():
    assert list(SECTIONS) == list(CATALOGUE)


def test_faults_and_notes_stand_under_their_headings():
    faults, notes = PAGE.index("\n## Faults"), PAGE.index("\n## Worth knowing")
    for kind, each in CATALOGUE.items():
        place = PAGE.index(f"### {kind}\n")
        assert faults < place < notes if each.is_fault else place > notes, kind


@pytest.mark.parametrize("kind", CATALOGUE)
def test_every_kind_is_explained_in_full(kind):
    for word in ("Symptom", "Evidence", "Told apart", "Fix", "Ask", "Sources"):
        assert f"- **{word}**" in SECTIONS[kind], word


def test_every_finding_that_the_page_mentions_exists():
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", PAGE)) - {
        "active_mtu",
        "false_claim_probability",
        "mtu_expires",
        "ndisc_cache",
        "table_fulls",
        "tcp_mtu_probing",
        "ip_no_pmtu_disc",
    }
    assert named <= set(CATALOGUE)


def test_a_kind_of_a_newer_framegauge_stands_for_itself():
    assert title("some_new_kind") == "some new kind"
