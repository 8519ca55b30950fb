"""What testbeds can do: one entry for each kind, which agrees with the testbeds themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_type_hints

import framegauge
from framegauge.networks.capabilities import BUILT, CAPABILITIES
from framegauge.study.testbed import Testbed
from framegauge.testbeds.base import Conditions
from framegauge.testbeds.rack import RackTestbed
from framegauge.testbeds.ssh import SshTestbed
from framegauge.testbeds.veth import VethTestbed

ROOMS = ("study", "experiment", "workloads", "evidence")
COMPARED = re.compile(r'\b(?:kind|testbed) (?:==|!=|in|not in) \(?"(?:rack|veth|fake|ssh|fabric|kernel|hosts)"')


def test_every_kind_has_an_entry():
    assert set(CAPABILITIES) == set(get_args(get_type_hints(Testbed)["kind"]))
    assert set(BUILT) == set(get_args(get_type_hints(Conditions)["testbed"]))


def test_the_testbeds_agree():
    for bed in (RackTestbed, VethTestbed):
        assert BUILT[bed.kind].is_private is bed.is_private
    assert BUILT["hosts"].is_private is SshTestbed.is_private
    assert {name for name, able in CAPABILITIES.items() if able.is_invented} == {"fake"}


def test_rules_and_checks_ask_for_capabilities_and_not_for_names():
    """But for the model of the file, whose messages are about its words."""
    package = Path(framegauge.__file__).parent
    files = [path for room in ROOMS for path in (package / room).rglob("*.py")]
    found = {path.relative_to(package).as_posix() for path in files if COMPARED.search(path.read_text())}
    assert found == {"study/testbed.py"}
    assert COMPARED.search('if bed.kind not in ("rack", "fake"):')
