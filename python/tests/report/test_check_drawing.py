"""The path of a finding as data, as a line and as a picture: only what was measured, whatever the document holds."""

from __future__ import annotations

import html
import io
import re
import shlex
import xml.etree.ElementTree as ET

import pytest
from helpers.check_documents import documents
from helpers.check_lab import Lab, interface
from helpers.support import by_length
from hypothesis import given, settings, strategies as st
from rich.cells import cell_len
from rich.console import Console

from framegauge.check.judgement import blame
from framegauge.report.check import drawing, findings, html as check_html, terminal as check_terminal

R1, R2, R3 = "10.1.0.254", "10.2.0.254", "10.3.0.254"
TAGS = {"svg", "title", "desc", "g", "line", "path", "rect", "circle", "text"}


def path(lab: Lab) -> dict:
    """Of the one fault that there is."""
    (found,) = lab.faults()
    return found["path"]


def line(lab: Lab, width: int = 120, is_unicode: bool = True) -> str:
    return drawing.line(path(lab), width, is_unicode)


def traced(there, back=(), families=(4,)) -> Lab:
    lab = Lab((1, 1), families)
    lab.fault([("a", "b", 4)], hops=there)
    if back:
        lab.fault([("b", "a", 4)], hops=back)
    return lab


def test_a_located_link_is_marked_and_what_was_not_measured_is_a_question_mark():
    lab = traced([(R1, "expired"), (R2, "silent"), ("", "silent")])
    assert line(lab) == f"a ──9000── {R1} ──✗ 1500── {R2} ──?── b"
    assert drawing.words(path(lab)).startswith(
        f"The bad link is between router {R1} and router {R2}: packets of up to 1500 bytes pass. ? was not measured."
    )
    assert [each["direction"] for each in path(lab)["links"]] == ["out", "out", "out"]


def test_the_other_direction_tells_of_the_links_behind_the_bad_one_where_both_meet_at_its_ends():
    # Both routers of the link answer to both sides from the link's own /30.
    there = [(R1, "expired"), ("10.9.0.2", "silent"), ("", "silent")]
    lab = traced(there, [(R2, "expired"), ("10.9.0.1", "silent"), ("", "silent")])
    assert line(lab).endswith("10.9.0.2 ──9000←── b")
    assert "← was measured in the other direction." in drawing.words(path(lab))
    # A way back that does not come to the link's other end is another path: it tells nothing.
    lab = traced(there, [(R2, "expired"), ("10.8.0.1", "silent"), ("", "silent")])
    assert all("9000←" not in drawing.line(found["path"], 120) for found in lab.faults())


def test_hops_that_do_not_answer_are_unknown_and_the_stretch_is_said():
    lab = traced([(R1, "expired"), (None, "silent"), (None, "silent"), (R3, "silent"), ("", "silent")])
    assert line(lab) == f"a ──9000── {R1} ──✗? 1500── 2×? ──✗? 1500── {R3} ──?── b"
    assert f"somewhere between router {R1} and router {R3}" in drawing.words(path(lab))
    assert path(lab)["located"] is False


def test_a_trace_that_does_not_end_says_that_hops_may_be_missing():
    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=[(None, "silent")] * 3)
    assert line(lab) == "a ──✗? 1500── ?… ──✗? 1500── b"


def test_two_neighbours_have_switches_between_them_that_no_trace_shows():
    lab = Lab((2,)).fault(Lab((2,)).pairs, hops=[("", "silent")])
    assert line(lab) == "a ──✗? 1500── [switches of 10.1.0.0/24] ──✗? 1500── b"
    assert path(lab)["both_directions"] is True


def test_a_host_that_its_neighbours_testify_against_is_marked_at_its_own_link():
    lab = Lab((4,))
    lab.fault(lab.some(lambda a, b: b == "c"))
    assert line(lab) == "a ──9000── [switches of 10.1.0.0/24] ──✗ 1500── c"
    lab = Lab((4,))
    lab.fault(lab.some(lambda a, b: a == "c"))
    assert line(lab) == "c ──✗ 1500── [switches of 10.1.0.0/24] ──9000── a"


def test_a_host_whose_own_interface_is_small_is_marked_there_also_between_neighbours():
    lab = Lab((2,))
    lab.device("b")["mtu"] = 1500
    lab.fault([("a", "b", 4)], 1504, hops=[("", "silent")])
    lab.fault([("b", "a", 4)], 1500, "too_small", told=[(None, 1500)])
    assert line(lab) == "a ──?── [switches of 10.1.0.0/24] ──✗ 1504── b"
    assert [each["kind"] for each in lab.blame()] == ["host_interface_too_small", "tcp_probing_off"]


def test_a_router_that_reports_its_link_is_marked_there_with_a_trace_and_without():
    lab = Lab((1, 1)).fault([("a", "b", 4)], 1500, "too_small", told=[(R1, 1500)])
    assert line(lab) == f"a ──?── ?… ──?── {R1} ──✗ 1500── ?… ──?── b"
    lab.fault(
        [("a", "b", 4)], 1500, "too_small", told=[(R1, 1500)], hops=[(R1, "too_big"), (R2, "silent"), ("", "silent")]
    )
    assert line(lab) == f"a ──9000── {R1} ──✗ 1500── {R2} ──?── b"


def test_other_flows_are_on_another_path():
    lab = traced([(R1, "expired"), (R2, "silent"), ("", "silent")])
    lab.fault([("a", "b", 4)], bad=8, hops=[(R1, "expired"), (R2, "silent"), ("", "silent")])
    assert path(lab)["other_flows_carry_bytes"] == 9000
    assert "Other flows carry 9000 bytes, on another path." in drawing.words(path(lab))


def test_a_tunnel_runs_over_an_underlay():
    lab = Lab((2,))
    for name in lab.hosts:
        lab.device(name).update(name="vx0", kind="vxlan", mtu=8950, parent="eth1", overhead_bytes=50, driver=None)
        lab.hosts[name]["facts"]["interfaces"].append(interface("eth1", f"192.0.2.{ord(name[0])}"))
    for pair in lab.pairs.values():
        pair |= {"interface": "vx0", "route_mtu_bytes": 8950, "tcp": None}
    lab.fault(lab.pairs, 1454, told=[(None, 8950)])
    assert line(lab) == "a ──✗? 1454── [underlay of vx0] ──✗? 1454── b"


@pytest.mark.parametrize("kind", ["unreachable", "unknown"])
def test_what_has_no_size_has_no_drawing(kind):
    lab = Lab((2,)).fault([("a", "b", 4)], None, kind)
    assert [each["path"] for each in lab.blame()] == [None]


def test_both_ip_versions_of_one_fault_are_one_finding_with_two_columns_and_both_addresses():
    lab = Lab((1, 1), (4, 6))
    for family, near, far in ((4, R1, R2), (6, "fd00:1::fe", "fd00:2::fe")):
        lab.fault([("a", "b", family)], hops=[(near, "expired"), (far, "silent"), ("", "silent")])
    (found,) = lab.faults()
    assert found["pairs"] == [["a", "b", 4], ["a", "b", 6]]
    rows = {row["name"]: (row["ipv4"], row["ipv6"]) for row in found["evidence_table"]}
    assert rows["Largest packet that passes"] == ("1500 bytes", "1500 bytes")
    assert rows["Last hop that receives large packets"] == (R1, "fd00:1::fe")
    assert rows["Next hop, receives small packets only"] == (R2, "fd00:2::fe")
    assert rows["Other direction"] == ("carries 9000 bytes", "carries 9000 bytes")
    assert f"lost from router {R1} to router {R2} (IPv6: fd00:1::fe to router fd00:2::fe)." in found["summary"]
    assert found["path"]["nodes"][1]["addresses"] == {"ipv4": R1, "ipv6": "fd00:1::fe"}
    # What concerns an interface is there once; what concerns one IP version, for each.
    runs = [each["run"] for each in found["commands"]]
    assert len([run for run in runs if run.startswith("ip link set")]) == 2
    assert [run.split()[5] for run in runs if run.startswith("nft")] == ["forward"] * 2


def test_a_hash_that_misses_a_pair_of_one_ip_version_makes_no_second_finding():
    lab = Lab((2, 1), (4, 6))
    for family, near, far in ((4, R1, R2), (6, "fd00:1::fe", "fd00:2::fe")):
        hops = [(near, "expired"), (far, "silent"), ("", "silent")]
        lab.fault([("a", "c", family)], bad=8, hops=hops)
    lab.fault([("b", "c", 4)], bad=1, hops=[(R1, "expired"), (R2, "silent"), ("", "silent")])
    (found,) = lab.faults()
    assert len(found["pairs"]) == 3


def test_sizes_that_differ_are_two_causes():
    lab = Lab((2,), (4, 6)).fault([("a", "b", 4)], 1500)
    lab.fault([("a", "b", 6)], 1400)
    assert len(lab.faults()) == 2


def test_where_there_is_no_room_nodes_far_from_the_bad_link_are_left_out():
    hops = [*((f"10.9.{index}.254", "expired") for index in range(8)), (R2, "silent"), ("", "silent")]
    lab = traced(hops)
    assert line(lab, 250).count("9000") == 8
    short = line(lab, 80)
    assert short == f"a ─9000─ … ─9000─ 10.9.7.254 ─✗ 1500─ {R2} ─?─ b"
    assert cell_len(short) <= 80


def test_a_long_name_keeps_both_ends():
    lab = traced([("fd00:1abc:1234:5678:9abc:def0:1234:5678", "expired"), (R2, "silent"), ("", "silent")])
    assert line(lab).startswith("a ──9000── fd00:1abc:12…f0:1234:5678 ──✗ 1500──")


def test_a_terminal_without_unicode_gets_ascii():
    lab = traced([(R1, "expired"), (R2, "silent"), ("", "silent")])
    assert line(lab, is_unicode=False) == f"a --9000-- {R1} --X 1500-- {R2} --?-- b"
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, "ascii"), width=100)
    document = lab.document() | {"findings": lab.blame()}
    document["hosts"][0]["name"] = "ä"
    check_terminal.show(document, console)
    console.file.flush()
    text = raw.getvalue().decode("ascii")
    assert f"a --9000-- {R1} --X 1500-- {R2} --?-- b" in text
    assert " ok" in text


def test_commands_are_lines_by_themselves_on_page_and_terminal():
    lab = Lab((4,), (4, 6))
    lab.fault(lab.some(lambda a, b: b == "c"))
    document = lab.document()
    console = Console(file=io.StringIO(), width=40)
    check_terminal.show(document, console, details=True)
    lines = [each.strip() for each in console.file.getvalue().splitlines()]
    page = check_html.page(document)
    blocks = re.findall(r'<pre class="commands"[^>]*><code>(.*?)</code></pre>', page, re.DOTALL)
    for found in document["findings"]:
        for command in found["commands"]:
            assert command["run"] in lines
            shlex.split(command["run"])
    shown = [html.unescape(each) for block in blocks for each in block.split("\n")]
    assert shown == [each["run"] for found in document["findings"] for each in found["commands"]]
    assert not any("#" in each for each in shown)


@pytest.mark.parametrize("name", ["</svg><script>", "\x1b[31m", "a\nb", "漢" * 60, "‮evil"])
def test_a_hostile_name_is_text(name):
    lab = Lab((2,)).fault(Lab((2,)).pairs)
    found = path(lab)
    for node in found["nodes"]:
        node["name"] = name
        node["addresses"] = dict.fromkeys(node["addresses"], name)
    found["source"] = name
    parts(drawing.svg(found, "p"))
    shown = drawing.line(found, 80)
    assert shown.isprintable()
    assert drawing.words(found).isprintable()


def parts(text: str) -> list[ET.Element]:
    """The drawings, as well-formed XML without anything but shapes and texts."""
    assert "style=" not in text
    quoted = re.sub(r" class=([a-z]+)>", r' class="\1">', text)
    root = ET.fromstring(f"<all>{quoted}</all>")
    pictures = list(root.iter("svg"))
    for picture in pictures:
        assert {each.tag for each in picture.iter()} <= TAGS
        assert picture.get("role") == "img"
        named = str(picture.get("aria-labelledby")).split()
        assert [next(each for each in picture.iter() if each.get("id") == name).tag for name in named] == [
            "title",
            "desc",
        ]
        x, y, width, height = map(float, str(picture.get("viewBox")).split())
        for box in picture.iter("rect"):
            assert x <= float(box.get("x")) <= float(box.get("x")) + float(box.get("width")) <= x + width
            assert y <= float(box.get("y")) <= float(box.get("y")) + float(box.get("height")) <= y + height
    return pictures


@pytest.mark.thorough
@settings(max_examples=by_length(60, 1000))
@given(documents(), st.integers(20, 200), st.booleans())
def test_any_document_has_a_drawing_that_is_whole_and_claims_nothing_else(document, width, is_unicode):
    target = document["target_mtu"]
    sizes = {pair["path_mtu_bytes"] for pair in document["pairs"]}
    hops = {
        answer.get("address") for pair in document["pairs"] for trace in pair["traces"] for hop in trace["hops"]
        for answer in (hop["small"], hop["large"])
    }  # fmt: skip
    told = {each["address"] for pair in document["pairs"] for each in pair["told_by"]}
    for found in blame.blame(document):
        drawn = found["path"]
        if drawn is None:
            continue
        nodes, links = drawn["nodes"], drawn["links"]
        assert len(nodes) == len(links) + 1
        assert (nodes[0]["name"], nodes[-1]["name"]) == (drawn["source"], drawn["destination"])
        assert [drawn["source"], drawn["destination"], drawn["family"]] in found["pairs"]
        assert {node["name"] for node in nodes if node["kind"] == "router"} <= hops | told
        bad = [index for index, link in enumerate(links) if link["bad"]]
        assert bad == list(range(bad[0], bad[-1] + 1))
        assert len(bad) == 1 or not drawn["located"]
        assert all(link["carries_bytes"] in ({*sizes, None} if link["bad"] else {target, None}) for link in links)
        for text in (drawing.line(drawn, width, is_unicode), drawing.words(drawn)):
            assert text.isprintable()
        assert is_unicode or drawing.line(drawn, width, is_unicode).isascii()
        pictures = parts(drawing.svg(drawn, "p"))
        for picture in pictures:
            assert len(list(picture.iter("rect"))) == len(nodes)
            assert len(list(picture.iter("line"))) == len(links)
            assert len(list(picture.iter("circle"))) == len(bad)


@given(documents())
def test_a_finding_shows_every_command_under_its_machine(document):
    for found in blame.blame(document):
        shown = [run for _, lines in findings.grouped(found) for run in lines]
        assert sorted(shown) == sorted(each["run"] for each in found["commands"])
        assert found["summary"]
        # A line of `fix` is a command or a comment: no name from outside starts a line of its own.
        runs = {each["run"] for each in found["commands"]}
        ends = [each for each in found["fix"].split("\n") if not each.startswith("# ")]
        assert len(ends) >= len(found["commands"])
        assert "\n".join(ends).count("  # on ") >= len(runs)
