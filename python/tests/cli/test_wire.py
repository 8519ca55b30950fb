"""`framegauge wire`: the table on a fake agent, and every word of its help on the real one where that is built."""

import json
import re

import pytest

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.cli import main as cli, wire as cli_wire
from framegauge.errors import AgentError
from framegauge.networks.fragments import fragments

TABLE = """\
link MTU           9000
vxlan over IPv6     -70
                          40  IPv6 header (RFC 8200 section 3)
                           8  UDP header (RFC 768)
                           8  VXLAN header (RFC 7348 section 5)
                          14  inner Ethernet header (IEEE 802.3 clause 3.2)
inner MTU          8930  the largest packet that fits

its frame          9018  with header and FCS
on the wire        9038  with preamble and gap

TCP over IPv4 inside: MSS 8890, 8878 bytes of payload a segment (timestamps on)
TCP over IPv6 inside: MSS 8870, 8858 bytes of payload a segment (timestamps on)
"""


@pytest.fixture
def fake(fake_agent, monkeypatch):
    monkeypatch.setenv("FRAMEGAUGE_AGENT", str(fake_agent))


@pytest.mark.parametrize("layers", ["vxlan,ipv6", "VXLAN,IPv6"])
def test_the_table(layers, fake, capsys):
    assert cli.main(["wire", "--mtu", "9000", "--encap", layers]) == 0
    assert capsys.readouterr().out == TABLE


def test_json_is_the_agents_answer(fake, capsys):
    assert cli.main(["wire", "--mtu", "1500", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["inner_mtu"], found["overhead_bytes"], found["layers"]) == (1500, 0, [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mtu", "9k"], '--mtu: found "9k", expected bytes such as 9000'),
        (["--mtu", "-1"], '--mtu: found "-1", expected bytes such as 9000'),
        (["--mtu", "9000", "--rate", "10"], '--rate: found "10", expected a rate such as 1 Gb/s (units: '),
        (["--mtu", "9000", "--rate", "0 b/s"], '--rate: found "0 b/s", expected more than 0 b/s'),
        (["--mtu", "9000", "--encap", "vxlam"], 'wire: encapsulations: found "vxlam", expected vxlan'),
    ],
)
def test_bad_input_is_one_line_and_exit_2(fake, arguments, message, capsys):
    assert cli.main(["wire", *[f"{arguments[0]}={arguments[1]}", *arguments[2:]]]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"framegauge: {message}")
    assert err.count("\n") == 1


@pytest.mark.agent
def test_help_has_examples_and_every_encapsulation_that_the_real_agent_knows(capsys):
    agent = find_agent()
    with pytest.raises(SystemExit, match="0"):
        cli_wire.parser().parse_args(["--help"])
    text = capsys.readouterr().out
    assert "examples:" in text
    with Agent.open([agent, "host"]) as host:
        with pytest.raises(AgentError) as error:
            host.request("frames.wire", {"mtu": 9000, "encapsulations": ["?"], "bits_per_second": None})
        words = re.search(r"expected one of (.*)$", error.value.message)[1].split(", ")
    assert len(words) == 32
    for word in words:
        assert re.search(rf"(?<![\w-]){word}(?![\w-])", text), word


@pytest.mark.agent
def test_the_real_agent_with_a_rate(monkeypatch, capsys):
    monkeypatch.setenv("FRAMEGAUGE_AGENT", find_agent())
    assert cli.main(["wire", "--mtu", "1500", "--encap", "vlan,esp-tunnel:nat-t", "--rate", "10 Gb/s"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^tagged frame +1522  which every device on the way must take$", out, re.MULTILINE)
    assert re.search(r"at 10 Gb/s: goodput at most 8\.988 Gb/s, 810,636 full packets per second", out)
    assert cli.main(["wire", "--mtu", "1279", "--encap", "vxlan,ipv6"]) == 2
    assert "vxlan: found an MTU of 1279 bytes around it, expected at least 1280 for ipv6" in capsys.readouterr().err


@pytest.mark.agent
def test_levels_are_the_closed_formula(monkeypatch, capsys):
    """IPv4 and TCP with timestamps take 52 bytes of the MTU; header, FCS, preamble and gap add 38 to it."""
    monkeypatch.setenv("FRAMEGAUGE_AGENT", find_agent())
    assert cli.main(["wire", "--levels", "9000,1500,4200", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["levels"]
    assert [row["mtu"] for row in rows] == [1500, 4200, 9000]
    shares = [(mtu - 52) / (mtu + 38) for mtu in (1500, 4200, 9000)]
    for row, share in zip(rows, shares, strict=True):
        assert row["payload_share"] == pytest.approx(share)
        assert row["gain"] == pytest.approx(share / shares[0] - 1)
        assert row["gain_of_largest"] == pytest.approx((share - shares[0]) / (shares[2] - shares[0]))
        assert row["packets_per_gigabyte"] == pytest.approx(1e9 / (row["mtu"] - 52))
    assert cli.main(["wire", "--levels", "--rate", "10 Gb/s"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ *4200 +9\.788 Gb/s +\+3\.96% +77% +241,080 +78%$", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ("1500", '--levels: found "1500", expected at least two MTUs such as 1500,9000'),
        (
            "1500,9k",
            '--levels: found "9k", expected bytes such as 9000, 64 KiB or 100 MB (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB); '
            'perhaps "9 kB" or "9 KiB"',
        ),
    ],
)
def test_bad_levels_are_one_line_and_exit_2(levels, message, capsys):
    assert cli.main(["wire", "--levels", levels]) == 2
    assert capsys.readouterr().err == f"framegauge: {message}\n"


@pytest.mark.agent
def test_a_stack_has_the_mtu_inside_of_each_layer(monkeypatch, capsys):
    """PPPoE takes 8; AES-CBC with HMAC-SHA1-96 leaves ((1492 - 44 - 12) & ~15) - 2 (Linux xfrm_state_mtu())."""
    monkeypatch.setenv("FRAMEGAUGE_AGENT", find_agent())
    words = ["wire", "--mtu", "1500", "--encap", "pppoe,esp-tunnel:aes-cbc:sha1,vxlan"]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^MTU inside of it +(\d+)$", out, re.MULTILINE) == ["1492", "1422"]
    assert re.search(r"^inner MTU +1372  the largest packet that fits$", out, re.MULTILINE)
    assert "12  unused: ESP grows by 16 bytes (RFC 4303 section 2.4; Linux esp_output())" in out
    assert "58 to 73: padding to whole blocks; the inner MTU is the largest packet that fits with its own" in out
    assert cli.main([*words, "--json"]) == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert [layer["inner_mtu"] for layer in layers] == [1492, 1422, 1372]
    assert [layer["range"] and layer["range"]["most_bytes"] for layer in layers] == [None, 73, None]


RDMA = """\
RoCEv2: the IP MTU that each RDMA path MTU needs, and its payload as a share of the wire (IPv4, full packets)
path MTU  over IPv4  over IPv6  Linux offers from  payload of the wire
     256        316        336                352                75.7%
     512        572        592                608                86.2%
    1024       1084       1104               1120                92.6%
    2048       2108       2128               2144                96.2%
    4096       4156       4176               4192                98.0%
"""


@pytest.mark.parametrize(
    ("mtu", "last"),
    [
        (
            "1500",
            "MTU 1500 has room for path MTU 1024; Linux offers it.\n"
            "Path MTU 4096 needs an MTU of 4156 (4192 on Linux, +5.9% payload): 4200 is enough, and for RDMA 9000 does no "
            "more.\n",
        ),
        (
            "4160",
            "MTU 4160 has room for path MTU 4096 over IPv4, 2048 over IPv6; Linux offers 2048.\n"
            "Path MTU 4096 needs an MTU of 4156 (4192 on Linux, +2.0% payload): 4200 is enough, and for RDMA 9000 does no "
            "more.\n",
        ),
        (
            "9000",
            "MTU 9000 has room for path MTU 4096; Linux offers it.\n"
            "There is no larger one: a larger MTU changes nothing for RDMA.\n",
        ),
    ],
)  # fmt: skip
def test_rdma(fake, mtu, last, capsys):
    assert cli.main(["wire", "--mtu", mtu, "--rdma"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(RDMA)
    assert out.endswith(f"\n\n{last}")


def test_rdma_inside_of_an_overlay(fake, capsys):
    assert cli.main(["wire", "--mtu", "4200", "--encap", "vxlan", "--rdma", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["mtu"], found["families"][0]["path_mtu"]) == (4150, 2048)
    assert cli.main(["wire", "--mtu", "1500", "--rdma", "--ping"]) == 2
    assert capsys.readouterr().err.startswith(
        "framegauge: --rdma: found --levels, --rate or --ping beside it, expected"
    )


@pytest.mark.agent
def test_the_published_datagram_of_nfs(monkeypatch, capsys):
    """A READ of 8 KiB: six frames at 1500, two on FDDI, one at 9000, 175 cells on ATM."""
    monkeypatch.setenv("FRAMEGAUGE_AGENT", find_agent())
    assert cli.main(["wire", "--nfs-read", "8192", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["payload_bytes"], found["packet_bytes"]) == (8320, 8348)
    assert sum(each["bytes"] for each in found["headers"]) == 8348 - 8192
    counts = {(each["medium"], each["mtu"]): (len(each["packets_bytes"]), each["cells"]) for each in found["links"]}
    assert counts == {
        ("ethernet", 1500): (6, None), ("ethernet", 9000): (1, None), ("fddi", 4352): (2, None), ("atm", 9180): (1, 175),
    }  # fmt: skip
    assert all(part["source"] for each in found["links"] for part in each["parts"])
    assert cli.main(["wire", "--nfs-read", "8192"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^Ethernet, MTU 1500 \(RFC 894\): 6 packets$", out, re.MULTILINE)
    assert re.search(r"^  packets +6  5 x 1500 \+ 948 bytes with IP headers$", out, re.MULTILINE)
    assert re.search(r"^ATM, MTU 9180 \(RFC 2225 section 7\): 1 packet in 175 cells of 53 bytes$", out, re.MULTILINE)


@pytest.mark.agent
@pytest.mark.parametrize("mtu", [576, 1500, 4200, 9000])
def test_the_agents_fragments_are_those_by_which_runs_are_checked(mtu, monkeypatch, capsys):
    monkeypatch.setenv("FRAMEGAUGE_AGENT", find_agent())
    for payload in (0, mtu - 28, mtu - 27, 8320, 65_507):
        assert cli.main(["wire", "--datagram", str(payload), "--mtu", str(mtu), "--json"]) == 0
        ethernet = json.loads(capsys.readouterr().out)["links"][0]
        assert len(ethernet["packets_bytes"]) == fragments(payload, mtu)


@pytest.mark.agent
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--datagram", "65508"],
            "wire: bytes: found 65508 bytes, expected at most 65507: a packet ends at 65,535 bytes",
        ),
        (["--nfs-read", "8192", "--mtu", "67"], "wire: mtu: found 67, expected 68 to 65535 bytes"),
    ],
)
def test_what_is_no_datagram_is_one_line(arguments, message, monkeypatch, capsys):
    monkeypatch.setenv("FRAMEGAUGE_AGENT", find_agent())
    assert cli.main(["wire", *arguments]) == 2
    assert capsys.readouterr().err == f"framegauge: {message}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--datagram", "8k"],
            '--datagram: found "8k", expected bytes such as 9000, 64 KiB or 100 MB (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB); '
            'perhaps "8 kB" or "8 KiB"',
        ),
        (
            ["--datagram", "8", "--nfs-read", "8"],
            "--nfs-read: found --datagram beside it, expected only --mtu and --json",
        ),
        (
            ["--nfs-read", "8", "--encap", "vxlan"],
            "--encap: found --nfs-read beside it, expected only --mtu and --json",
        ),
    ],
)
def test_words_that_do_not_go_together_are_one_line(arguments, message, capsys):
    assert cli.main(["wire", *arguments]) == 2
    assert capsys.readouterr().err == f"framegauge: {message}\n"
