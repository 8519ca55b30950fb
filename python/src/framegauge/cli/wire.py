"""Arguments and output of `framegauge wire`; no logic."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from framegauge.cli import output, values
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.errors import InputError

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "what encapsulations take from an MTU, and how datagrams are framed"
_MORE = """\
Layers are named from the outermost to the innermost. ipv4 or ipv6 after a layer is the version of its outer IP header
(ipv4 if none is named); options follow a colon.

  tunnels, which take from the MTU:
    vxlan[:gpe]  geneve[:OPTION_BYTES]  nvgre
    gre, gretap  [:key][:checksum][:sequence][:encap-limit]
    ipip  6in4  4in6  ip6ip6  [:encap-limit] where the outer header is IPv6
    wireguard  openvpn[:tap][:cbc[:HMAC]]  pppoe  l2tp[:length][:sequence]  pptp
    l2tpv3[:udp][:COOKIE_BYTES][:no-sublayer]  stt  gtp-u[:sequence][:pdu-session]
    esp-tunnel, esp-transport  [:nat-t][:CIPHER][:HMAC], with aes-gcm (if none is named), aes-gcm-12, aes-gcm-8,
      chacha20, aes-cbc, 3des-cbc, aes-ctr or null, and for the last four sha256 (if none is named), md5, sha1, sha384
      or sha512
    ah-tunnel, ah-transport  [:HMAC][:align8]
    srv6[:SEGMENTS][:reduced][:l2]  fou  gue  (also gre:fou, gretap:gue)  464xlat, nat64  [:fragment]
  frame only, which leave the link's MTU as it is unless :in-mtu says that the link counts them:
    vlan  qinq  mpls[:LABELS]  macsec[:no-sci]

--datagram and --nfs-read show how a UDP datagram is cut into packets on Ethernet (1500 and 9000, or --mtu), on FDDI
(4352) and on ATM (9180, in cells).

An MTU is the largest IP packet, never the frame. No root is needed, and nothing is sent.

examples:
  framegauge wire --mtu 9000 --encap vxlan,ipv6 --rate "10 Gb/s"
  framegauge wire --mtu 1500 --encap pppoe,wireguard
  framegauge wire --mtu 9000 --encap vlan,geneve:8,ipv6 --json | jq .inner_mtu
  framegauge wire --mtu 1500 --encap esp-transport,vxlan       VXLAN in IPsec
  framegauge wire --mtu 9000                                   no encapsulation at all
  framegauge wire --levels                                     which MTU gives how much of the gain
  framegauge wire --levels 1500,4200,9000 --encap vxlan
  framegauge wire --mtu 9000 --ping 192.0.2.7                  the ping of each system that fills it
  framegauge wire --mtu 1500 --encap wireguard --ping 10.0.0.2 inside of a tunnel
  framegauge wire --mtu 1500 --encap pppoe,esp-tunnel:aes-cbc:sha1  a stack, with the MTU inside of each layer
  framegauge wire --mtu 1500 --rdma                            which path MTU of RDMA it carries, and what 4096 needs
  framegauge wire --nfs-read 8192                              the datagram that answers a READ of 8 KiB
  framegauge wire --datagram 8320 --mtu 4200 --json            a datagram with so much payload
"""
BYTES = (0, 10**9 - 1)  # the agent says which of them make sense


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser(
        "wire", SUMMARY, _MORE,
        "What encapsulations take from an MTU, where every figure comes from, and what is left for TCP.",
    )  # fmt: skip
    mode = verb.add_mutually_exclusive_group()
    mode.add_argument("--mtu", metavar="BYTES", help="MTU of the link, such as 9000")
    mode.add_argument(
        "--levels", nargs="?", const="", metavar="LIST",
        help="compare MTUs, such as 1500,4200,9000 (default: the usual ones, those of the clouds included)",
    )  # fmt: skip
    verb.add_argument("--datagram", metavar="BYTES", help="explain a UDP datagram with so much payload, over IPv4")
    verb.add_argument(
        "--nfs-read", metavar="BYTES", help="explain the datagram that answers an NFSv3 READ of so many bytes"
    )
    verb.add_argument("--encap", default="", metavar="LIST", help="such as vxlan,ipv6; see below (default: none)")
    verb.add_argument(
        "--ping", nargs="?", const="HOST", metavar="HOST",
        help="print the ping that fills the MTU (inside of --encap), as each system counts it; nothing is sent",
    )  # fmt: skip
    verb.add_argument(
        "--rdma", action="store_true",
        help="which path MTU of RDMA (RoCEv2) the MTU carries, inside of --encap, and what each needs",
    )  # fmt: skip
    verb.add_argument("--rate", metavar="RATE", help='link rate, such as "10 Gb/s", for goodput and packet rate')
    verb.add_argument("--json", action="store_true", help="print JSON (framegauge schema wire)")
    return verb


def run(words: Sequence[str]) -> None:
    """Ask the agent and print its answer."""
    from framegauge.cli import encapsulations as wire

    options = parser().parse_args(words)
    if options.datagram is not None or options.nfs_read is not None:
        _datagram(options)
        return
    if options.mtu is None and options.levels is None:
        raise InputError(
            "wire: found no --mtu, --levels or --datagram, expected one; for example: framegauge wire --mtu 9000"
        )
    mtus = list(wire.LEVELS)
    if options.mtu is not None:
        mtus = [values.mtu("--mtu", options.mtu, *BYTES)]
    elif options.levels:
        mtus = [values.mtu("--levels", text.strip(), *BYTES) for text in options.levels.split(",")]
        if len(set(mtus)) < 2:
            raise InputError(f'--levels: found "{options.levels}", expected at least two MTUs such as 1500,9000')
    rate = None if options.rate is None else values.rate("--rate", options.rate)
    layers = options.encap.lower().split(",") if options.encap.strip() else []
    if options.ping is not None or options.rdma:
        document, lines = _inside(options, layers)
    elif options.mtu is not None:
        document = wire.ask(mtus[0], layers, rate)
        lines = wire.table(document)
    else:
        document = wire.compared(mtus, layers, rate)
        lines = wire.levels_table(document)
    if options.json:
        output.show_json(document, indent=2)
    else:
        output.show(*lines)


def _inside(options: argparse.Namespace, layers: Sequence[str]) -> tuple[dict[str, Any], Sequence[str]]:
    """The commands, or the path MTUs of RDMA, for an MTU or for what a stack of encapsulations leaves of it."""
    from framegauge.cli import encapsulations as wire, pings, rdma

    option = "--rdma" if options.rdma else "--ping"
    if options.mtu is None or options.rate is not None or (options.rdma and options.ping is not None):
        others = "--levels, --rate or --ping" if options.rdma else "--levels or --rate"
        raise InputError(f"{option}: found {others} beside it, expected --mtu, --encap and --json alone")
    mtu = values.mtu("--mtu", options.mtu, *BYTES)
    if layers:
        mtu = wire.ask(mtu, layers, None)["inner_mtu"]
    if options.rdma:
        document = rdma.ask(mtu)
        return document, rdma.table(document)
    document = pings.document(mtu, options.ping)
    return document, pings.table(document)


def _datagram(options: argparse.Namespace) -> None:
    from framegauge.cli import datagrams

    datagram_options = {"--datagram": options.datagram, "--nfs-read": options.nfs_read}
    (option, text), *further = ((name, value) for name, value in datagram_options.items() if value is not None)
    others = {
        "--levels": options.levels,
        "--encap": options.encap or None,
        "--rate": options.rate,
        "--ping": options.ping,
        "--rdma": options.rdma or None,
    }
    further += [(name, value) for name, value in others.items() if value is not None]
    if further:
        raise InputError(f"{further[0][0]}: found {option} beside it, expected only --mtu and --json")
    mtu = None if options.mtu is None else values.mtu("--mtu", options.mtu, *BYTES)
    document = datagrams.ask(values.size(option, text, *BYTES), options.nfs_read is not None, mtu)
    if options.json:
        output.show_json(document, indent=2)
    else:
        output.show(*datagrams.table(document))
