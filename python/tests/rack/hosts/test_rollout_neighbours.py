"""A neighbour that is none of the hosts of a roll-out, and stays at 1500: what is sent to it by UDP must still arrive."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.rollouts import done, file_of
from helpers.switched import Lab, lab

pytestmark = pytest.mark.needs("ethtool", "ping")
HOSTS = ["a", "b"]


@pytest.fixture
def there() -> Iterator[Lab]:
    """Two hosts that are meant, and a storage box, with which one has spoken."""
    with lab([*HOSTS, "box"]) as found:
        found.inside("a", "ping", "-c1", "-W5", found.address("box"))
        yield found


def asked(there: Lab, folder: Path) -> Path:
    return file_of(there, folder, hosts=[f"netns:{there.hosts[name]}" for name in HOSTS], more="families: [4]")


def arrives(there: Lab, payload: int) -> bool:
    """Whether a datagram comes to the box and back."""
    return "1 received" in there.inside("a", "sh", "-c", f"ping -c1 -W2 -s {payload} {there.address('box')} || true")


def test_a_raise_is_refused_until_routes_keep_small_what_the_neighbour_gets(there: Lab, tmp_path: Path) -> None:
    path = asked(there, tmp_path)
    code, said = done("plan", path, "--json")
    assert code == 2, said
    [finding] = [each for each in json.loads(said)["findings"] if each["what"] == "neighbour"]
    assert finding["severity"] == "refused"
    assert there.address("box") in finding["found"]
    assert "answers packets of 1500, more was not asked" in finding["found"]
    route = f"{there.address('box')}/32 dev eth1 mtu lock 1500"
    assert f"ip route add {route}" in finding["remedy"]
    assert done("apply", path)[0] == 2
    assert there.is_old()
    for name in HOSTS:
        there.ip(name, "route", "add", *route.split())
    code, said = done("apply", path)
    assert code == 0, said
    assert there.mtu("a") == 9000
    assert arrives(there, 4000), "it is cut into fragments of 1500, as before"
    assert "mtu lock 1500" in there.ip("a", "route", "show", there.address("box"))


def test_without_such_a_route_datagrams_to_it_are_lost(there: Lab, tmp_path: Path) -> None:
    """What the refusal is for."""
    path = asked(there, tmp_path)
    path.write_text(path.read_text() + "force: [neighbour]\n")
    code, said = done("apply", path)
    assert code == 0, said
    assert re.search("warning: .*: neighbour: ", said), "what the plan warns of is told by who changes it as well"
    assert arrives(there, 1000)
    assert not arrives(there, 4000)
