"""The matrix of a path MTU check: the path MTU from each host to each other. One for IPv4 and IPv6 if they agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.check.judgement.groups import as_people_count, subnet
from framegauge.check.judgement.verdict import VERDICTS

__all__ = [
    "LEGEND",
    "NOT_PROBED",
    "ONE_ENDED",
    "ONE_ENDED_WORDS",
    "Cell",
    "Matrix",
    "caption_of",
    "counts",
    "headline",
    "legend",
    "matrices",
    "plan_text",
]

LEGEND = {
    "carries_target": ("✓", "carries the target"),
    "too_small": ("", "too small: larger packets return an error or arrive in fragments"),
    "black_hole": ("!", "black hole: larger packets are lost without an error"),
    "unreachable": ("×", "unreachable: no probe arrives"),
    "unknown": ("?", "no verdict: too little data"),
}
PARTIAL, NOT_PROBED, ONE_ENDED = "*", "–", "°"
ONE_ENDED_WORDS = "one-ended: tests both directions at once, so the direction of a fault is unknown"
_WORST = ("unreachable", "black_hole", "too_small", "unknown", "carries_target")


@dataclass(frozen=True)
class Cell:
    """What is known from one host (or subnet) to another."""

    verdict: str
    path_mtu: int | None
    is_partial: bool
    bad: int = 0  # pairs, where the cell stands for several
    known: int = 1
    is_one_ended: bool = False

    def text(self, is_short: bool = False) -> str:
        """A sign for each verdict, and the size where there is room; never told by colour alone."""
        return self._sign(is_short) + (ONE_ENDED if self.is_one_ended else "")

    def _sign(self, is_short: bool) -> str:
        sign = LEGEND[self.verdict][0]
        size = "" if self.path_mtu is None or is_short else str(self.path_mtu)
        if self.verdict in ("too_small", "black_hole"):
            mark = {"too_small": "▪", "black_hole": "!"}[self.verdict] if is_short else size + sign
            return (mark or "▪") + (PARTIAL if self.is_partial else "")
        return sign

    def words(self, target: int) -> str:
        """In full, for those who do not see it."""
        size = "an unknown size" if self.path_mtu is None else f"{self.path_mtu} bytes"
        some = " on some flows" if self.is_partial else ""
        return {
            "carries_target": f"carries {target}",
            "too_small": f"too small: {size}{some}",
            "black_hole": f"black hole above {size}{some}",
            "unreachable": "unreachable",
            "unknown": "no verdict",
        }[self.verdict] + (", one-ended" if self.is_one_ended else "")


@dataclass(frozen=True)
class Matrix:
    """Rows send, columns receive. A pair that is not there was not probed."""

    title: str
    names: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]
    of_subnets: bool = False


def matrices(document: Mapping[str, Any], most_hosts: int) -> list[Matrix]:
    """One a family, or one for both where they agree; of subnets if there are more hosts than fit."""
    names = [host["name"] for host in document["hosts"]]
    for pair in document["pairs"]:
        names += [pair["source"], pair["destination"]]
    names = list(dict.fromkeys(names))
    if len(names) > most_hosts:
        return _of_subnets(document, most_hosts)
    cells: dict[int, dict[tuple[str, str], Cell]] = {4: {}, 6: {}}
    for pair in document["pairs"]:
        flows = pair["flows"]
        is_partial = 0 < flows["bad"] < flows["probed"] - flows["unknown"]
        cell = Cell(pair["verdict"], pair["path_mtu_bytes"], is_partial, is_one_ended=_is_one_ended(pair))
        cells[pair["family"]][pair["source"], pair["destination"]] = cell
    by_family = {family: family_cells for family, family_cells in cells.items() if family_cells}
    if len(by_family) == 2 and by_family[4] == by_family[6]:
        return [Matrix("IPv4 and IPv6", tuple(names), by_family[4])]
    return [Matrix(f"IPv{family}", tuple(names), family_cells) for family, family_cells in by_family.items()]


def _is_one_ended(pair: Mapping[str, Any]) -> bool:
    return pair.get("method") == "one_ended"


def _of_subnets(document: Mapping[str, Any], most: int) -> list[Matrix]:
    prefixes = {
        entry["address"]: entry["prefix_length"]
        for host in document["hosts"] for interface in (host["facts"] or {}).get("interfaces", ())
        for entry in interface.get("addresses", ())
    }  # fmt: skip

    def place(pair: Mapping[str, Any], end: str) -> str:
        address = pair[f"{end}_address"]
        return str(pair[end]) if address is None else subnet(address, prefixes.get(address))

    grids = []
    for family in (4, 6):
        groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
        for pair in document["pairs"]:
            if pair["family"] == family:
                groups[place(pair, "source"), place(pair, "destination")].append(pair)
        names = tuple(sorted({name for way in groups for name in way}, key=as_people_count))
        if groups and len(names) <= most:
            cells = {way: _summed(pairs) for way, pairs in groups.items()}
            grids.append(Matrix(f"IPv{family}, by subnet", names, cells, of_subnets=True))
    return grids


def _summed(pairs: Sequence[Mapping[str, Any]]) -> Cell:
    worst = min((pair["verdict"] for pair in pairs), key=_WORST.index)
    sizes = [pair["path_mtu_bytes"] for pair in pairs if pair["path_mtu_bytes"] is not None]
    bad = [pair for pair in pairs if pair["verdict"] in ("unreachable", "black_hole", "too_small")]
    is_partial = any(pair["flows"]["bad"] < pair["flows"]["probed"] - pair["flows"]["unknown"] for pair in bad)
    is_partial = is_partial or 0 < len(bad) < len(pairs)
    is_one_ended = any(map(_is_one_ended, pairs))
    return Cell(worst, min(sizes, default=None), is_partial, len(bad), len(pairs), is_one_ended)


def caption_of(matrix: Matrix) -> str:
    """What its numbers are."""
    what = "subnet" if matrix.of_subnets else "host"
    return f"{matrix.title}: path MTU in bytes, from the {what} of the row to the {what} of the column"


def legend(matrix: Matrix, is_short: bool = False) -> str:
    """What its signs mean."""
    used = {cell.verdict for cell in matrix.cells.values()}
    sizes = {"too_small": "▪" if is_short else "1500", "black_hole": "!" if is_short else "1500!"}
    words = [f"{sizes.get(verdict, sign)} {text}" for verdict, (sign, text) in LEGEND.items() if verdict in used]
    words += [f"{PARTIAL} only some flows or pairs"] if any(cell.is_partial for cell in matrix.cells.values()) else []
    words += [f"{ONE_ENDED} {ONE_ENDED_WORDS}"] if any(cell.is_one_ended for cell in matrix.cells.values()) else []
    return "; ".join(words)


def counts(document: Mapping[str, Any]) -> dict[str, int]:
    """Pairs by verdict, all verdicts."""
    tally = Counter(pair["verdict"] for pair in document["pairs"])
    return {name: tally[name] for name in VERDICTS}


def headline(document: Mapping[str, Any]) -> str:
    """The verdict in a sentence."""
    tally, total, target = counts(document), len(document["pairs"]), document["target_mtu"]
    bad = tally["too_small"] + tally["black_hole"] + tally["unreachable"]
    if document["verdict"] == "carries_target":
        return f"{'The only pair carries' if total == 1 else f'All {total} pairs carry'} packets of {target} bytes."
    without = f" {tally['unknown']} without a verdict." if tally["unknown"] else ""
    if document["verdict"] == "fault":
        share = f"{bad} of {total} pairs" if total > 1 else "The only pair"
        return f"{share} {'does' if bad == 1 else 'do'} not carry packets of {target} bytes.{without}"
    share = f"{tally['unknown']} of {total} pairs" if total > 1 else "the only pair"
    they = "it carries" if tally["unknown"] == 1 else "they carry"
    return f"No verdict for {share}: too little data to say whether {they} {target} bytes."


def was_probed(document: Mapping[str, Any]) -> bool:
    """Whether any host took part that had somebody to probe."""
    away = {host["name"] for host in document["hosts"] if host["error"]}
    return any(pair["source"] not in away and pair["destination"] not in away for pair in document["pairs"])


def plan_text(document: Mapping[str, Any]) -> str:
    """Which pairs were probed, and which faults that would have found."""
    if not was_probed(document):
        return "Nothing was probed: too few hosts took part."
    plan = document["plan"]
    what = f"{plan['pairs']} of {plan['of']} ordered pairs"
    if plan["kind"] != "sampled":
        what = "every ordered pair" if plan["kind"] == "full_mesh" else "every host to every target, with echoes"
    if between := plan.get("group_pairs"):
        what += f", {between['probed']} of {between['of']} pairs of subnets" if plan["kind"] == "sampled" else ""
    chances = ", ".join(
        f"{100 * share:.4g} % for one bad of {members}"
        for members, share in sorted(document["coverage"].items(), key=lambda item: int(item[0]))
    )
    flows = f"{document['flows']} flow{'' if document['flows'] == 1 else 's'}"
    return (
        f"Probed: {what}, {flows} per pair. Probability that a pair's flows meet a bad parallel path, if it is chosen "
        f"by ports, too (layer 3+4): {chances}. Probability that a black hole is a false alarm, whatever causes the "
        f"losses: at most {document['false_claim_probability']:.1g}."
    )
