"""What people and Prometheus get to see of a check: complete, escaped, offline."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest
from helpers.check_documents import documents
from helpers.check_lab import Lab
from helpers.support import bench, by_length
from hypothesis import given, settings
from prometheus_client.parser import text_string_to_metric_families
from rich.cells import cell_len
from rich.console import Console

from framegauge.check.judgement import blame, planner
from framegauge.report.check import (
    html as check_html,
    matrix as check_matrix,
    prometheus as check_prometheus,
    terminal as check_terminal,
)

fleet = bench("fleet_model")


def faulty() -> Lab:
    lab = Lab((8, 8), (4, 6))
    lab.fault(lab.some(lambda a, b: b == "c"), 1504)
    lab.fault([("a", "k", 4)], bad=8)
    lab.fault(lab.some(lambda a, b: a == "f" and b != "c"), 1500, "too_small", told=[(None, 1500)])
    lab.fault([("h", "p", 6)], None, "unknown")
    return lab.fault([("d", "e", 4)], None, "unreachable")


def printed(document, width=130, details=False) -> str:
    console = Console(file=io.StringIO(), width=width)
    check_terminal.show(document, console, details)
    return console.file.getvalue()


def widest(text, document) -> int:
    """The widest line that is no command: those are never broken, so that they can be copied."""
    commands = {each["run"] for found in document["findings"] for each in found["commands"]}
    return max(cell_len(line) for line in text.splitlines() if line.strip().split("  # on ")[0] not in commands)


def test_the_answer_fits_a_screen_and_the_worst_comes_first():
    document = faulty().document()
    text = printed(document, 120)
    assert text.split("\n1. ")[1].count("\n") <= 40
    found = document["findings"]
    assert [line.split(".")[0] for line in text.splitlines() if re.match(r"[0-9]+\. ", line)] == [
        str(number) for number in range(1, len(found) + 1)
    ]
    assert found[0]["summary"].split(".")[0] in " ".join(text.split())
    assert "Affected pairs" not in text
    whole = printed(document, 120, details=True)
    assert whole.count("Affected pairs") >= len(found) - 2
    assert all(each["summary"][:40] in whole for each in found)


def test_no_line_ends_with_blanks_and_a_line_that_is_broken_keeps_its_place():
    document = faulty().document()
    assert not [line for line in printed(document, 60).splitlines() if line != line.rstrip()]
    summary = printed(document, 60).split("\n1. ")[1].split("──")[0].splitlines()[1:-1]
    assert len(summary) > 3
    assert all(line.startswith("   ") for line in summary), summary


def test_where_no_host_took_part_nothing_is_said_to_be_probed():
    """Nor how long it took, nor how sure it is; and hosts keep their spelling."""
    lab = Lab((2,))
    for name in ("a", "b"):
        lab.hosts[name] |= {"error": f"{name}.example: ssh ended: timed out", "facts": None}
    lab.fault([("a", "b", 4), ("b", "a", 4)], None, "unknown")
    text = printed(lab.document())
    assert "Nothing was probed: too few hosts took part." in text
    assert "It took" not in text
    assert "Probability" not in text
    assert "\n   a.example: ssh ended: timed out. The paths of host a were not measured." in text
    assert "start an agent" not in text
    one = Lab((3,))
    one.hosts["c"] |= {"error": "c: gone", "facts": None}
    assert "Probed: every ordered pair" in printed(one.document())


def test_a_host_that_takes_in_more_than_its_mtu_says_why():
    lab = Lab((3,))
    lab.device("c")["mtu"] = 1500
    lab.fault(lab.some(lambda _, b: b == "c"), 1504, hops=[("", "silent")])
    assert "A few bytes more than its MTU still arrive: drivers leave room for a VLAN tag." in " ".join(
        printed(lab.document()).split()
    )


def test_sixteen_hosts_are_a_matrix_with_sizes_that_fits():
    document = faulty().document()
    text = printed(document)
    assert "60 of 480 pairs do not carry packets of 9000 bytes. 1 without a verdict." in text
    row = next(line for line in text.splitlines() if line.startswith("  1 a"))
    assert row.split() == ["1", "a", "✓", "1504!", *["✓"] * 7, "1500!*", *["✓"] * 5]
    assert widest(text, document) <= 130
    assert "1. A NIC or switch port drops large frames without an error\n   host c, receiving\n" in text
    assert "1 in 4" not in text
    assert "99.99 % for one bad of 4" in text


def test_the_headline_counts_as_people_do():
    one, two = [{"verdict": "carries_target"}], [{"verdict": "unknown"}, {"verdict": "carries_target"}]
    lost = [{"verdict": "black_hole"}]

    def said(verdict, pairs):
        return check_matrix.headline({"verdict": verdict, "pairs": pairs, "target_mtu": 9000})

    assert said("carries_target", one) == "The only pair carries packets of 9000 bytes."
    assert said("carries_target", one * 2) == "All 2 pairs carry packets of 9000 bytes."
    assert said("fault", lost) == "The only pair does not carry packets of 9000 bytes."
    assert said("could_not_tell", two) == (
        "No verdict for 1 of 2 pairs: too little data to say whether it carries 9000 bytes."
    )
    assert said("could_not_tell", two[:1]) == (
        "No verdict for the only pair: too little data to say whether it carries 9000 bytes."
    )


def test_a_narrow_terminal_gets_signs_alone():
    document = faulty().document()
    text = printed(document, 70)
    assert widest(text, document) <= 70
    assert "!*" in text
    assert "1504!" not in text


def test_families_that_agree_share_a_matrix():
    assert [each.title for each in check_matrix.matrices(Lab((2,), (4, 6)).document(), 16)] == ["IPv4 and IPv6"]
    assert [each.title for each in check_matrix.matrices(faulty().document(), 16)] == ["IPv4", "IPv6"]


def test_pairs_of_one_end_are_marked_everywhere():
    lab = Lab((2,)).fault([("a", "b", 4)])
    lab.pairs["a", "b", 4] |= {"method": "one_ended", "direction": "unknown"}
    text = printed(lab.document())
    assert "1500!°" in text
    assert "✓°" not in text
    assert "° one-ended: tests both directions at once" in text
    page = check_html.page(lab.document())
    assert "black hole above 1500 bytes, one-ended" in page
    assert "black hole, one-ended" in page
    found = samples(check_prometheus.text(lab.document(), 0.0))
    marked = [key for key in found if key[0] == "framegauge_path_one_ended"]
    assert marked == [("framegauge_path_one_ended", ("destination", "b"), ("family", "4"), ("source", "a"))]


@pytest.fixture(scope="module")
def thousand():
    hosts = fleet.Fleet(1000, 50, 4)
    plan = planner.plan(hosts.members())
    name = hosts.name(77)
    fault = fleet.Fault(
        "nic_receiving",
        frozenset({(f"switch {hosts.leaf(77)}", name), (fleet.leaf_address(hosts.leaf(77)), name)}),
        (name,),
    )
    document = fleet.measure(hosts, plan, [fault])
    document["findings"] = blame.blame(document)
    return document


def test_a_thousand_hosts_are_a_summary(thousand):
    text = printed(thousand)
    assert "1000 hosts" in text
    assert "host r1h27, receiving" in text
    assert "IPv4, by subnet" in text
    summary, finding = text.split("\n1. ")
    assert summary.count("\n") < 40
    assert finding.count("\n") < 40


def test_a_thousand_hosts_are_a_small_page(thousand):
    text = check_html.page(thousand)
    assert len(text.encode()) < 500_000
    assert "IPv4, by subnet" in text


class Page(HTMLParser):
    """Balanced tags, ids, texts; and nothing that could load or run."""

    void = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def tags(self, name):
        return [attributes for tag, attributes in self.seen if tag == name]


def check_page(text: str) -> Page:
    found = Page(text)
    assert not {tag for tag, _ in found.seen} & {"script", "img", "link", "iframe", "object", "form"}
    assert not any(key.startswith("on") or key in ("src", "style") for _, each in found.seen for key in each)
    assert all(each["href"].startswith("#") for each in found.tags("a"))
    ids = [each["id"] for _, each in found.seen if "id" in each]
    assert len(set(ids)) == len(ids)
    assert {each["href"][1:] for each in found.tags("a")} <= set(ids)
    assert "default-src 'none'" in next(each["content"] for each in found.tags("meta") if "http-equiv" in each)
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert "@import" not in text
    return found


def test_the_page_is_a_document_for_everyone():
    document = faulty().document()
    text = check_html.page(document, "today")
    found = check_page(text)
    assert found.tags("html") == [{"lang": "en"}]
    evidence = sum(bool(each["evidence_table"]) for each in document["findings"])
    assert evidence > 4
    assert len(found.tags("caption")) == len(found.tags("table")) == 4 + evidence
    assert all(each.get("scope") in ("row", "col") for each in found.tags("th"))
    # What a colour says is said by a sign and by words, too; what scrolls can be scrolled by keys.
    assert "black hole above 1504 bytes" in text
    assert all(
        {"tabindex", "role", "aria-label"} <= set(each)
        for each in found.tags("div")
        if each["class"].split()[:1] == ["scroll"]
    )
    assert text.index('id="findings"') < text.index('id="matrix"') < text.index('id="pairs"') < text.index('id="hosts"')
    for what in ("prefers-color-scheme: dark", "@media print", "max-width: 40rem"):
        assert what in text


def test_the_page_of_64_hosts_and_both_families_is_below_a_megabyte():
    lab = Lab((32, 32), (4, 6))
    lab.fault(lab.some(lambda a, b: True, 4), bad=9)
    text = check_html.page(lab.document())
    check_page(text)
    assert len(text.encode()) < 1_000_000


@pytest.mark.parametrize(
    "names", [("", "\x01"), ("\u0301", "\u0301\u0301"), ("\u200b", "漢" * 40), ("e\u0301" * 60, "b")]
)
def test_names_of_no_width_or_of_too_much_are_printed(names):
    document = Lab((2,), (4,)).document()
    for place, name in zip("ab", names, strict=True):
        for host in document["hosts"]:
            host["name"] = name if host["name"] == place else host["name"]
        for pair in document["pairs"]:
            for end in ("source", "destination"):
                pair[end] = name if pair[end] == place else pair[end]
    assert "\x01" not in printed(document)


@pytest.mark.soak(2)
@settings(max_examples=by_length(60, 1000))
@given(documents())
def test_any_document_can_be_shown_and_no_name_becomes_markup(document):
    document["findings"] = blame.blame(document)
    text = check_html.page(document, "<now>")
    check_page(text)
    assert "<script" not in text
    text.encode()
    assert "\x1b" not in printed(document)
    check_prometheus.text(document, 1.0).encode()


def samples(text: str) -> dict[tuple, float]:
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type == "gauge"
        for sample in family.samples:
            key = (sample.name, *sorted(sample.labels.items()))
            assert key not in found, "twice"
            found[key] = sample.value
    return found


def test_prometheus_reads_what_was_measured():
    found = samples(check_prometheus.text(faulty().document(), 1_700_000_000.5))
    pair = (("destination", "c"), ("family", "4"), ("source", "a"))
    assert found["framegauge_path_mtu_bytes", *pair] == 1504
    assert found["framegauge_route_mtu_bytes", *pair] == 9000
    assert found["framegauge_path_carries_target", *pair] == 0
    unknown = (("destination", "p"), ("family", "6"), ("source", "h"))
    assert ("framegauge_path_mtu_bytes", *unknown) not in found
    assert ("framegauge_path_carries_target", *unknown) not in found
    assert found["framegauge_check_pairs", ("verdict", "black_hole")] == 31
    assert found["framegauge_check_pairs", ("verdict", "unknown")] == 1
    assert found["framegauge_check_findings", ("kind", "icmp_filtered")] == 0
    assert found["framegauge_check_findings", ("kind", "unreachable")] == 1
    assert found["framegauge_check_verdict", ("verdict", "fault")] == 1
    assert found["framegauge_check_timestamp_seconds",] == 1_700_000_000.5
    assert found["framegauge_check_target_mtu_bytes",] == 9000


@pytest.mark.soak(2)
@settings(max_examples=by_length(60, 1000))
@given(documents())
def test_prometheus_reads_every_name_back(document):
    text = check_prometheus.text(document, 0.0)
    assert re.fullmatch(r"(?s)(.*\n)+", text)
    found = samples(text)
    for pair in document["pairs"]:
        if pair["path_mtu_bytes"] is not None:
            labels = {"source": pair["source"], "destination": pair["destination"], "family": str(pair["family"])}
            assert ("framegauge_path_mtu_bytes", *sorted(labels.items())) in found
