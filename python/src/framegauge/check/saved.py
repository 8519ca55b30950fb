"""The document of a check, read back from a file that `framegauge check --json` was written to.

Files are copied, edited and made by other programs: what later code relies on is checked here. Keys that are not named
here are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr

from framegauge import foreign
from framegauge.check.judgement import schema, verdict
from framegauge.errors import CorruptResults, InputError, NewerResults
from framegauge.results import shapes

__all__ = ["read"]

EXPECTED = "the document that framegauge check --json prints"
Count = Annotated[int, Field(strict=True, ge=0, le=10**9)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)


class _Between(_Shape):
    probed: Count
    of: Count


class _Plan(_Shape):
    kind: StrictStr
    pairs: Count
    of: Count
    group_pairs: _Between | None = None


class _Pair(_Shape):
    source: StrictStr
    destination: StrictStr
    verdict: Literal["carries_target", "too_small", "black_hole", "unreachable", "unknown"]


class _Finding(_Shape):
    kind: StrictStr
    where: StrictStr


class _Host(_Shape):
    name: StrictStr
    error: StrictStr | None = None


class _Document(_Shape):
    target_mtu: Annotated[int, Field(strict=True, ge=68, le=65_535)]
    verdict: Literal["carries_target", "fault", "could_not_tell"]
    false_claim_probability: Share
    flows: Annotated[Count, Field(ge=1)]
    coverage: dict[Annotated[StrictStr, Field(pattern="^[0-9]{1,9}$")], Share]
    plan: _Plan
    pairs: Annotated[list[_Pair], Field(min_length=1)]
    findings: list[_Finding]
    hosts: list[_Host]


def read(path: Path) -> Mapping[str, Any]:
    """The document in a file; InputError (CorruptResults, NewerResults) if it cannot be read as one."""
    try:
        data = foreign.read(path)
    except OSError as error:
        raise InputError(f"{path}: found no way to read it ({error.strerror}), expected {EXPECTED}") from None
    except foreign.TooLarge as error:
        raise CorruptResults(f"{path}: {error}") from None
    content = shapes.load(data, str(path), EXPECTED)
    if not isinstance(content, dict) or type(content.get("schema")) is not int:
        raise CorruptResults(f"{path}: found no schema, expected {EXPECTED}")
    if content["schema"] > schema.SCHEMA:
        raise NewerResults(
            f"{path}: found schema {content['schema']}, expected at most {schema.SCHEMA}: update to read it"
        )
    document = shapes.checked(content, _Document, str(path))
    follows = verdict.of_check(document["pairs"], document["hosts"])
    if document["verdict"] != follows:
        mismatch = f"found {shapes.shown(document['verdict'])}, expected {shapes.shown(follows)}"
        raise CorruptResults(f"{path}: verdict: {mismatch}, as its pairs and hosts have it")
    return document
