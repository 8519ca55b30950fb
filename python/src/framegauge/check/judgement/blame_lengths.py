"""Rules of the hosts themselves that drop packets by their length, at just the size above which they are lost."""

from __future__ import annotations

import shlex
from collections import defaultdict

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Pair
from framegauge.check.judgement.findings import Command, Finding
from framegauge.check.judgement.hops import Node
from framegauge.check.judgement.lengths import Place, line_words, places, rule_text

__all__ = ["rules"]


def rules(case: Case) -> None:
    """`dropped_by_rule`: one finding a host and rule, if it drops every such packet that it meets."""
    groups: dict[tuple[str, str, str, int], list[tuple[Place, Pair]]] = defaultdict(list)
    for pair in case.open.values():
        certain = (candidate for candidate in places(case.mesh, pair) if candidate.rule.certain)
        # Of echoes, which are no datagrams of UDP, a rule may know otherwise.
        is_told = pair.verdict == "black_hole" and not pair.is_partial and not pair.is_one_ended
        place = next(certain, None) if is_told else None
        if place is not None:
            # One rule of both IP versions is one cause.
            groups[place.host, place.role, rule_text(place.rule), place.rule.above].append((place, pair))
    for _, group in sorted(groups.items()):
        _finding(case, group[0][0], [pair for _, pair in group])


def _finding(case: Case, place: Place, pairs: list[Pair]) -> None:
    rule, keys = place.rule, [pair.key for pair in pairs]
    what = rule_text(rule)
    text = (
        f"Host {place.host} drops packets above {rule.above} bytes that it {place.role}, by a rule of its own "
        f"({what}): just those are lost from {remedies.pairs_text(pairs)}."
    )
    case.add(
        Finding.about(
            "dropped_by_rule", f"the firewall of host {place.host}", [place.host], keys,
            f"{text} The rule was read from the host.", f"{text} {remedies.STALLS}", commands=_commands(place),
            advice=f"The rule must let packets of {case.mesh.target} bytes pass, or go. Then check again: what lies "
            "behind it could not be measured.",
            spot=Node(True, place.host), facts=(("Rule that drops by length", what),),
        ),
        keys,
    )  # fmt: skip


def _commands(place: Place) -> tuple[Command, ...]:
    """See the rule, and delete it; of a policy, only see which rule before it lets the smaller packets pass."""
    rule, on = place.rule, f"host {place.host}"
    look, delete = "see which rule asks for a length", "delete it, if nothing needs it"
    if rule.by_iptables:
        program = "iptables" if rule.ip_version == 4 else "ip6tables"
        table = f"{program} -t {shlex.quote(rule.table)}"
        commands = [Command(f"{table} -S {shlex.quote(rule.chain)}", on, look, rule.ip_version)]
        if (words := line_words(rule.line)) is not None:
            commands.append(Command(f"{table} -D {words}", on, delete, rule.ip_version))
        return tuple(commands)
    words = shlex.join((rule.family, rule.table, rule.chain))
    seen = Command(f"nft --handle list chain {words}", on, look)
    if rule.handle is None:
        return (seen,)
    return (seen, Command(f"nft delete rule {words} handle {rule.handle}", on, delete))
