"""MTUs on the kernel's command line, by dracut.cmdline(7)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from helpers.mutated import mutated
from hypothesis import given, strategies as st
from rollout.test_preflight import asked, facts

from framegauge.rollout import preflight
from framegauge.rollout.owners import Nic, ownership
from framegauge.rollout.preflight import survey

ETH1 = Nic("eth1", 3, "52:54:00:00:00:01", altnames=("enp3s0f1",))
LINE, GRUB = "/proc/cmdline", "/etc/default/grub"
STATIC = "ip=192.0.2.7::192.0.2.1:255.255.255.0:db1:eth1:none:1500"
STATIC_V6 = "ip=[2001:db8::7]::[2001:db8::1]:64::enp3s0f1:none:1500"


@pytest.mark.parametrize(
    ("path", "text", "word"),
    [
        (LINE, "root=/dev/sda quiet ip=eth1:dhcp:1500\n", "ip=eth1:dhcp:1500"),
        (LINE, f"rd.neednet=1 {STATIC}:52:54:00:00:00:01", f"{STATIC}:52:54:00:00:00:01"),
        (LINE, f"ro {STATIC_V6}", STATIC_V6),
        (GRUB, f'# ip=eth1:dhcp:1400\nGRUB_CMDLINE_LINUX="ro {STATIC}"\n', STATIC),
        ("/etc/dracut.conf.d/net.conf", "kernel_cmdline+=' ip=eth1:auto6:1500 '", "ip=eth1:auto6:1500"),
        ("/boot/loader/entries/a.conf", "options ro ip=eth1:on:1500", "ip=eth1:on:1500"),
        ("/etc/cmdline.d/bond.conf", "bond=eth1:ens1,ens2:mode=802.3ad:1500", "bond=eth1:ens1,ens2:mode=802.3ad:1500"),
    ],
)
def test_an_mtu_on_the_command_line_may_be_that_of_the_next_start(path: str, text: str, word: str) -> None:
    found = ownership({path: text}, ETH1, 9000)
    [mention] = found.mentions
    assert (mention.path, mention.is_named, mention.text, found.claims) == (path, True, word, ())
    # One that sets what is asked for is an owner.
    after = ownership({path: text.replace("1500", "9000")}, ETH1, 9000)
    assert ([claim.mtu for claim in after.claims], after.mentions) == ([9000], ())


@pytest.mark.parametrize(
    "text",
    [
        "ip=eth2:dhcp:1500", "ip=dhcp", "ip=eth1:dhcp", "ip=eth1:dhcp::52:54:00:00:00:01",
        "ip=192.0.2.7::192.0.2.1:255.255.255.0:db1:eth1:none:192.0.2.53:192.0.2.54", "bond=bond0:eth1:mode=1:1500",
        "ip=eth1:1500", "nip=eth1:dhcp:1500", "# ip=eth1:dhcp:1500",
    ],
)  # fmt: skip
def test_addresses_of_servers_and_other_interfaces_say_nothing(text: str) -> None:
    found = ownership({LINE: text}, ETH1, 9000)
    assert (found.claims, found.mentions) == ((), ())


def test_it_is_told_instead_of_that_nobody_sets_the_mtu() -> None:
    listed = preflight.findings({"a": facts(files={LINE: "ip=bond0:dhcp:1500"})}, asked("bond0"))
    assert [each.severity for each in listed if "ip=bond0:dhcp:1500" in each.found] == ["warning"]
    assert not any("no config file" in each.found for each in listed)


def test_the_survey_reads_no_other_word_of_it(tmp_path: Path) -> None:
    line = tmp_path / "cmdline"
    line.write_text(f'# ip=a\nGRUB_CMDLINE_LINUX="password=secret {STATIC} quiet"\n')
    done = subprocess.run(
        ["sh", "-c", survey.SCRIPT.replace(" /proc/cmdline ", f" {line} ")], capture_output=True, check=True
    )
    assert survey.parsed(done.stdout, "a")["files"][str(line)] == f"\n {STATIC}\n"


@given(mutated([STATIC, "bond=eth1:a,b::9000", "ip=[::1"]) | st.text(max_size=60))
def test_whatever_a_command_line_has_it_is_read(text: str) -> None:
    assert ownership({LINE: text}, ETH1, 9000).troubles == ()
