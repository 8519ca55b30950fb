"""One case in Mininet, for bench/peers/fabric.py: prints JSON. Needs Debian's mininet, so the system's Python.

sudo /usr/bin/python3 bench/peers/mininet_case.py {"senders": 12, "rate_mbit": 1000, "mtu": 1500, "offloads": false, …}
"""

# ruff: noqa: T201 (its output is its purpose)

import json
import os
import sys
import time

import mininet.net
from mininet.link import TCLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge
from mininet.topo import Topo

# It would set buffers and other limits of the whole machine, and leave them so: what runs after it would be another's.
mininet.net.fixLimits = lambda: None


class Star(Topo):
    """Hosts on one bridge, every link shaped both ways."""

    def build(self, hosts=2, rate_mbit=1000, queue=0):
        """Mininet's own hook; `queue` in packets, as its links have it."""
        switch = self.addSwitch("s1")
        for number in range(1, hosts + 1):
            self.addLink(self.addHost(f"h{number}"), switch, bw=rate_mbit, max_queue_size=queue or None)


class FatTree(Topo):
    """Al-Fares et al. 2008 with k = 4: 16 hosts, 20 switches, 48 links."""

    def build(self, rate_mbit=1000, k=4):
        """Mininet's own hook."""
        half = k // 2
        cores = [self.addSwitch(f"c{1 + n}") for n in range(half * half)]
        hosts = 0
        for pod in range(k):
            edges = [self.addSwitch(f"e{pod}{n}") for n in range(half)]
            aggregations = [self.addSwitch(f"a{pod}{n}") for n in range(half)]
            for place, aggregation in enumerate(aggregations):
                for edge in edges:
                    self.addLink(edge, aggregation, bw=rate_mbit)
                for core in cores[place * half : (place + 1) * half]:
                    self.addLink(aggregation, core, bw=rate_mbit)
            for edge in edges:
                for _ in range(half):
                    hosts += 1
                    self.addLink(self.addHost(f"h{hosts}"), edge, bw=rate_mbit)


def busy_seconds():
    """CPU time of the whole machine since some start: what was not idle, nor taken by a hypervisor. Of that the kernel
    keeps account; what else a CPU did is only sampled, with each tick."""
    with open("/proc/stat") as file:
        idle, waiting, *_, stolen = [int(word) for word in file.readline().split()[4:9]]
    return os.cpu_count() * time.monotonic() - (idle + waiting + stolen) / 100.0


def many_to_one(net, asked):
    """Mb/s that the last host gets from all others, and CPU seconds per gigabyte."""
    for switch in net.switches:
        for device in switch.intfNames():
            switch.cmd(f"ip link set {device} mtu {asked['mtu']}")
    hosts = [net[f"h{number}"] for number in range(1, asked["senders"] + 2)]
    for host in hosts:
        device = host.defaultIntf().name
        host.cmd(f"ip link set {device} mtu {asked['mtu']}")
        switch = "off" if not asked["offloads"] else "on"
        host.cmd(f"ethtool -K {device} tso {switch} gso {switch} gro {switch}")
    receiver = hosts[-1]
    for number in range(asked["senders"]):
        receiver.cmd(f"iperf3 -s -1 -D -p {5201 + number}")
    time.sleep(0.5)
    begun, busy = time.monotonic(), busy_seconds()
    for number, host in enumerate(hosts[:-1]):
        words = f"iperf3 -J -C cubic -c {receiver.IP()} -t {asked['seconds']:g} -p {5201 + number}"
        host.sendCmd(f"{words} > /tmp/framegauge-mininet-{number}.json 2>&1")
    for host in hosts[:-1]:
        host.waitOutput()
    took, busy = time.monotonic() - begun, busy_seconds() - busy
    rates, amount = 0.0, 0.0
    for number in range(asked["senders"]):
        path = f"/tmp/framegauge-mininet-{number}.json"
        with open(path) as file:
            end = json.load(file)["end"]
        rates += end["sum_received"]["bits_per_second"]
        amount += end["sum_received"]["bytes"]
    net["h1"].cmd("rm -f /tmp/framegauge-mininet-*.json")
    return {"goodput_bits_per_second": rates, "cpu_seconds_per_gigabyte": busy / amount * 1e9, "seconds": took}


def main():
    """Build, measure, take down."""
    asked = json.loads(sys.argv[1])
    setLogLevel("critical")
    if asked.get("topology") == "fat-tree":
        topology = FatTree(rate_mbit=asked["rate_mbit"])
    else:
        topology = Star(hosts=asked["senders"] + 1, rate_mbit=asked["rate_mbit"], queue=asked["queue_packets"])
    begun = time.monotonic()
    net = Mininet(topo=topology, link=TCLink, switch=LinuxBridge, controller=None)
    net.start()
    found = {"up_seconds": time.monotonic() - begun}
    try:
        if asked.get("topology") != "fat-tree":
            found.update(many_to_one(net, asked))
    finally:
        begun = time.monotonic()
        net.stop()
        found["down_seconds"] = time.monotonic() - begun
    print(json.dumps(found))


main()
