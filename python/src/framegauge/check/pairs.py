"""Makes pairs of the result document from what agents say of paths. Pure."""

from __future__ import annotations

from framegauge.check.judgement import verdict
from framegauge.check.plan import Asked, Path
from framegauge.testbeds.base import Json

__all__ = ["measured", "not_measured"]


def _ends(path: Path) -> Json:
    ends = path.ends
    return {
        "source": path.source, "destination": path.destination,
        "source_address": ends.source if ends else None, "destination_address": ends.destination if ends else None,
        "family": path.family, "interface": ends.interface if ends else None,
    }  # fmt: skip


def not_measured(path: Path) -> Json:
    """A pair of which nothing is known but that it has no route, if that."""
    nothing = {"probed": 0, "bad": 0, "unknown": 0, "path_mtus_bytes": {}}
    error = path.ends.error if path.ends else None
    return _ends(path) | {
        "verdict": "unknown" if error is None else "unreachable", "path_mtu_bytes": None, "route_mtu_bytes": None,
        "flows": nothing, "told_by": [], "controls": {"sent": 0, "lost": 0}, "tcp": None, "traces": [],
        "said": error, "slowly": None, "seconds": 0.0,
    }  # fmt: skip


def measured(path: Path, found: Json, asked: Asked) -> Json:
    """A pair that an agent has searched: `found` is what `check.run` or `check.echo` says of it."""
    return (
        _ends(path)
        | verdict.of_pair(found["flows"], asked.target_mtu)
        | {name: found[name] for name in ("route_mtu_bytes", "told_by", "controls", "tcp", "said", "slowly")}
        | {"traces": [], "seconds": round(found["seconds"], 4)}
        # The route was chosen before the source was: what leads there from it is what counts.
        | ({} if found["interface"] is None else {"interface": found["interface"]})
    )
