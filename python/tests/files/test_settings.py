"""What may be changed of a host: one list for study files and for the agent, and nothing of the machine on it."""

import pytest
from helpers.support import ROOT
from hypothesis import given, strategies as st

from framegauge.errors import QuantityError, StudyError
from framegauge.files import settings
from framegauge.study import file as study_file

STUDY = """\
testbed: {kind: fake}
factors: {mtu: {levels: [1500, 9000]}}
workloads: [{stream: {size: 10 MB}}]
"""


def test_the_agent_is_built_with_the_same_list() -> None:
    source = (ROOT / "crates/drivers/src/host/allowed.rs").read_text()
    assert 'include_str!("../../../../python/src/framegauge/files/settings.txt")' in source
    assert "net.ipv4.tcp_rmem" in settings.listed("sysctl")
    assert "fq" in settings.listed("qdisc")


def test_the_list_has_only_the_network() -> None:
    assert all(name.startswith("net.") for name in settings.listed("sysctl"))
    assert len(set(settings.listed("sysctl"))) == len(settings.listed("sysctl"))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("kernel.core_pattern", "|/tmp/x %p", "expected a sysctl of a network namespace, one of net.core.busy_poll, "),
        ("kernel.printk_ratelimit", "9", "expected a sysctl of a network namespace"),
        ("net.ipv4.tcp_rme", "9", "expected a sysctl of a network namespace, such as net.ipv4.tcp_rmem"),
        ("net.ipv4.tcp_rmem", "9 x", "expected three whole numbers: least, default, most"),
        ("net.ipv4.tcp_congestion_control", "../x", "expected the name of a congestion control"),
    ],
)
def test_a_study_file_hears_it_with_its_line(name: str, value: str, problem: str) -> None:
    with pytest.raises(StudyError) as caught:
        study_file.parse(f'{STUDY}sysctls:\n  {name}: "{value}"\n', "study.yaml")
    assert str(caught.value).startswith(f"study.yaml:5: sysctls.{name}: found ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_qdisc_is_one_of_the_list() -> None:
    assert settings.qdisc("fq") == "fq"
    assert settings.qdisc("default") == "default"
    for kind in ("netem", "../x", ""):
        with pytest.raises(QuantityError):
            settings.qdisc(kind)


@given(st.text(), st.text())
def test_no_value_names_a_file_or_a_program(name: str, value: str) -> None:
    for each in (name, "net.ipv4.tcp_rmem", settings.CONGESTION_CONTROL):
        if settings.sysctl(each, value) is None:
            assert set(value) <= set("abcdefghijklmnopqrstuvwxyz0123456789_- \t\n\v\f\r")
