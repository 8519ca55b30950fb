"""What the parts of a roll-out tell each other."""

from framegauge.rollout.model import Asked, Finding


def test_hosts_are_in_the_order_of_the_waves():
    asked = Asked((("b",), ("a", "c")), dict.fromkeys("abc", "eth1"), 9000)
    assert asked.hosts == ("b", "a", "c")


def test_a_finding_is_one_line_with_where_found_expected_and_remedy():
    one = Finding("db1/eth1", "max_mtu", "refused", "4082 bytes", "9000 or more", "ask for mtu: 4082")
    assert str(one) == "db1/eth1: max_mtu: found 4082 bytes, expected 9000 or more: ask for mtu: 4082"
