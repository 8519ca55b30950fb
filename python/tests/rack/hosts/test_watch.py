"""`framegauge watch` on a real change: four hosts in namespaces, each with a node_exporter, and a real Prometheus.

All send datagrams of 4000 bytes. Two hosts are raised to MTU 9000 while the ports that they are plugged into stay at
1500: what was cut into fragments before is now lost whole, and only counters of the sender tell.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.monitoring import prometheus
from helpers.support import PATIENCE_SECONDS

pytestmark = pytest.mark.needs("prometheus", "prometheus-node-exporter", "ip")

HOSTS = ("h1", "h2", "h3", "h4")
SWITCHED = HOSTS[:2]
STEP = 0.5
SENDER = """
import socket, sys, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: fragments are allowed
while True:
    try:
        sender.sendto(bytes(4000), ("10.77.0.1", 9))
    except OSError:
        pass
    time.sleep(0.02)
"""
COLLECTORS = ("netdev", "netclass", "netstat", "cpu")
TARGETS = ", ".join(f'"10.77.0.1{number}:9100"' for number in range(1, 5))
CONFIG = f"""
global: {{scrape_interval: 250ms, scrape_timeout: 250ms}}
scrape_configs:
  - job_name: node
    static_configs: [{{targets: [{TARGETS}]}}]
  - job_name: framegauge
    static_configs: [{{targets: ["127.0.0.1:9781"]}}]
"""


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Site:
    """A namespace with the bridge and the monitoring, and one per host."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.stack, self.mark = stack, secrets.token_hex(3)
        for name in ("mon", *HOSTS):
            run("ip", "netns", "add", self.of(name))
            stack.callback(run, "ip", "netns", "del", self.of(name))
            self.ip(name, "link set lo up")
        self.ip("mon", "link add br0 type bridge")
        self.ip("mon", "addr add 10.77.0.1/24 dev br0")
        self.ip("mon", "link set br0 up")
        for number, name in enumerate(HOSTS, 1):
            self.ip("mon", f"link add p{number} type veth peer name eth0 netns {self.of(name)}")
            self.ip("mon", f"link set p{number} master br0 up")
            self.ip(name, f"addr add 10.77.0.1{number}/24 dev eth0")
            self.ip(name, "link set eth0 up")
            flags = [f"--collector.{each}" for each in COLLECTORS]
            self.start(name, "prometheus-node-exporter", "--collector.disable-defaults", *flags, "--log.level=error")
            self.start(name, sys.executable, "-c", SENDER)

    def of(self, name: str) -> str:
        return f"fgw{self.mark}{name}"

    def ip(self, name: str, words: str) -> None:
        run("ip", "-n", self.of(name), *words.split())

    def inside(self, name: str) -> list[str]:
        return ["ip", "netns", "exec", self.of(name)]

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """A program in a namespace, ended with the site."""
        program = subprocess.Popen([*self.inside(name), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.stack.callback(program.wait)
        self.stack.callback(program.kill)
        return program

    def framegauge(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [*self.inside("mon"), sys.executable, "-m", "framegauge", "watch", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def asked(self, server: str, query: str) -> list[dict[str, Any]]:
        """What Prometheus answers now."""
        url = f"{server}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        reader = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
        answer = json.loads(run(*self.inside("mon"), sys.executable, "-c", reader, url))
        assert answer["status"] == "success", (query, answer)
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def until(self, server: str, query: str) -> None:
        """Waits until this is so."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.asked(server, query):
            assert time.monotonic() < end, query
            time.sleep(0.2)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with contextlib.ExitStack() as stack:
        yield Site(stack)


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[str]:
    with prometheus(CONFIG, inside=site.inside("mon"), place="127.0.0.1:9090") as address:
        yield address


@pytest.fixture(scope="module")
def file(site: Site, server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The watch file of a change that was made, once the time after it is over."""
    site.until(server, f"count(up == 1) == {len(HOSTS)}")  # Prometheus takes five seconds to begin
    time.sleep(17 * STEP + 1)
    at = time.time()
    for name in SWITCHED:
        site.ip(name, "link set eth0 mtu 9000")
    said = {
        "prometheus": server,
        "change": {"at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f"{at % 1:.3f}"[1:] + "Z",
                   "hosts": ["10.77.0.11", "10.77.0.12"], "settle": f"{4 * STEP} s"},
        "control": ["10.77.0.13", "10.77.0.14"],
        "before": f"{16 * STEP} s", "after": f"{16 * STEP} s", "step": f"{STEP} s",
        "coverage": "50 %",  # a busy machine loses scrapes
        "metrics": {
            "drops": {"negligible": 1},
            "mtu": {"query": 'node_network_mtu_bytes{$hosts,device="eth0"}', "kind": "gauge", "better": "higher",
                    "margin": "5 %", "decides": False},
        },
    }  # fmt: skip
    path = tmp_path_factory.mktemp("watch") / "watch.yaml"
    path.write_text(yaml.safe_dump(said))
    return path


def test_what_the_change_broke_is_worse_and_stops(site: Site, file: Path) -> None:
    done = site.framegauge(str(file), "--wait", "--json", "--html", str(file.with_suffix(".html")))
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == 1, [each["why"] for each in found["metrics"]]
    drops, mtu = found["metrics"]
    assert (found["gate"], drops["verdict"]) == ("stop", "worse"), drops["why"]
    assert drops["control"]["events_after"] == drops["switched"]["events_before"] == 0
    assert drops["switched"]["events_after"] > 100
    assert (mtu["switched"]["before"], mtu["switched"]["after"]) == (1500, 9000)
    assert "Stop: drops is worse" in file.with_suffix(".html").read_text()


@pytest.fixture(scope="module")
def exported(site: Site, server: str, file: Path) -> Iterator[None]:
    """The verdicts, served and scraped."""
    command = ["-m", "framegauge", "watch", str(file), "--listen", "127.0.0.1:9781", "--every", "1 s"]
    program = subprocess.Popen([*site.inside("mon"), sys.executable, *command], stderr=subprocess.DEVNULL)
    try:
        site.until(server, "framegauge_watch_gate == 1")
        yield
    finally:
        program.send_signal(signal.SIGINT)
        assert program.wait() == 130


def panels() -> list[Any]:
    dashboard = json.loads(resources.files("framegauge.watch").joinpath("grafana.json").read_text())
    found = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel["targets"]]
    found += [(each["name"], each["expr"]) for each in dashboard["annotations"]["list"]]
    assert len(found) > 15
    return [pytest.param(expression, id=f"{number} {title}") for number, (title, expression) in enumerate(found)]


@pytest.mark.parametrize("expression", panels())
@pytest.mark.usefixtures("exported")
def test_every_panel_of_the_dashboard_shows_something(site: Site, server: str, expression: str) -> None:
    query = expression.replace("$__rate_interval", "2s").replace("$instance", ".+")
    site.until(server, query)  # a scrape that comes too late on a busy machine leaves a gap


def rules() -> Sequence[tuple[str, str]]:
    groups = yaml.safe_load(resources.files("framegauge.watch").joinpath("alerts.yaml").read_text())["groups"]
    return [(rule["alert"], rule["expr"]) for group in groups for rule in group["rules"]]


@pytest.mark.parametrize(("name", "expression"), rules())
@pytest.mark.usefixtures("exported")
def test_the_rules_fire_for_what_is_so(site: Site, server: str, name: str, expression: str) -> None:
    if name in ("FramegaugeWatchStop", "FramegaugeWatchMetricWorse", "MtuDiffersFromMostHosts"):
        site.until(server, expression)
    else:
        assert not site.asked(server, expression)
