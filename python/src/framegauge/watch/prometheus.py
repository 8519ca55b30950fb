"""What a Prometheus server answers to range queries (GET /api/v1/query_range), within limits of time and size.

Secrets are read when they are needed and go into one header; no error and no result has them. Redirects are refused,
since they would hand the secret to whoever is named there.
"""

from __future__ import annotations

import base64
import http.client
import os
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from framegauge import foreign
from framegauge.errors import FramegaugeError, InputError
from framegauge.printable import one_line
from framegauge.watch.deadline import Deadline
from framegauge.watch.model import Server

__all__ = ["BadQuery", "Prometheus", "Series", "Unanswered", "matcher"]

MOST_BYTES = 32 << 20  # of one answer
MOST_SERIES = 10_000
MOST_SECRET = 64 << 10
BAD_QUERY = (400, 422)
API = "/api/v1/query_range"
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")


@dataclass(frozen=True)
class Series:
    """One series: its labels, and its value at each time that was asked for; NaN where it has none."""

    labels: Mapping[str, str]
    values: np.ndarray


class Unanswered(FramegaugeError):
    """The server gave no answer that can be used; one line."""


class BadQuery(Unanswered):
    """The server answers, but not this query."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """No other request, so that the redirect itself is an error."""


class Prometheus:
    """A server; InputError for a secret that is not there."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._header = _authorization(server)
        self._context = ssl.create_default_context(cafile=_existing(server.ca_file)) if server.ca_file else None

    def ask(self, query: str, times: Sequence[float]) -> list[Series]:
        """The series of a query at these times (seconds since 1970, at equal distances); BadQuery if the server does
        not take this one, Unanswered for anything else that is no answer."""
        step = (times[-1] - times[0]) / (len(times) - 1)
        parameters = {
            "query": query, "start": f"{times[0]:.3f}", "end": f"{times[-1]:.3f}", "step": f"{step:.3f}",
            "timeout": f"{self._server.timeout:.0f}s",
        }  # fmt: skip
        # As a form: a query of many hosts is too long for a line of a request.
        request = urllib.request.Request(
            self._server.url.rstrip("/") + API, urllib.parse.urlencode(parameters).encode(),
            {"Accept": "application/json", "User-Agent": "framegauge", **self._header},
        )  # fmt: skip
        answer = self._answer(request)
        return _series(answer, times, step, self._where())

    def _where(self) -> str:
        return f"prometheus {one_line(self._server.url, 200)}"

    def _answer(self, request: urllib.request.Request) -> Any:
        deadline = Deadline(self._server.timeout)
        opener = urllib.request.build_opener(_NoRedirect, *deadline.handlers(self._context))
        try:
            with deadline.begun():
                return self._read(opener, request, deadline)
        except Unanswered:
            if not deadline.is_over:
                raise
            raise Unanswered(
                f"{self._where()}: found no whole answer within {deadline.seconds:g} s, expected one"
            ) from None

    def _read(self, opener: urllib.request.OpenerDirector, request: urllib.request.Request, deadline: Deadline) -> Any:
        """The document in an answer; Unanswered also where the time was over before its last byte."""
        try:
            with opener.open(request, timeout=deadline.seconds) as response:
                data = response.read(MOST_BYTES + 1)
        except urllib.error.HTTPError as error:
            kind = BadQuery if error.code in BAD_QUERY else Unanswered
            raise kind(f"{self._where()}: {_refusal(error)}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise Unanswered(f"{self._where()}: found no answer ({one_line(reason, 200)})") from None
        if deadline.is_over:
            raise Unanswered("cut off")
        if len(data) > MOST_BYTES:
            raise Unanswered(f"{self._where()}: found an answer of more than {MOST_BYTES} bytes, expected fewer")
        try:
            return foreign.load_json(data)
        except ValueError as error:
            raise Unanswered(f"{self._where()}: found an answer that is no JSON ({one_line(error, 100)})") from None


def _refusal(error: urllib.error.HTTPError) -> str:
    """What the server says of an error, in its own words if it is Prometheus."""
    if error.code in (301, 302, 303, 307, 308):
        return f"found a redirect (HTTP {error.code}), expected the address where it leads to"
    if error.code in (401, 403):
        return f"found HTTP {error.code}, expected a token or a password that it accepts"
    try:
        answer = foreign.load_json(error.read(1 << 16))
        return f"found HTTP {error.code}: {one_line(answer['error'], 400)}"
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return f"found HTTP {error.code}, expected an answer of Prometheus"


def _series(answer: Any, times: Sequence[float], step: float, where: str) -> list[Series]:
    try:
        data = answer["data"]
        if answer["status"] != "success" or data["resultType"] != "matrix":
            raise BadQuery(f"{where}: found a {one_line(data.get('resultType'), 40)}, expected a matrix of series")
        rows = data["result"]
        if len(rows) > MOST_SERIES:
            raise BadQuery(
                f"{where}: found {len(rows)} series, expected at most {MOST_SERIES}: use $hosts in the query"
            )
        return [_one(row, times, step) for row in rows]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise Unanswered(f"{where}: found an answer of another form, expected one of Prometheus") from None


def _one(series: Any, times: Sequence[float], step: float) -> Series:
    values = np.full(len(times), np.nan)
    for at, text in series.get("values", ()):
        place = round((float(at) - times[0]) / step)
        if 0 <= place < len(times):
            value = float(text)
            values[place] = value if np.isfinite(value) else np.nan
    return Series({str(name): str(value) for name, value in series["metric"].items()}, values)


def _authorization(server: Server) -> dict[str, str]:
    """The header with the secret; none if the server needs none."""
    if server.token_file is not None or server.token_env is not None:
        return {"Authorization": f"Bearer {_secret('token', server.token_file, server.token_env)}"}
    if server.username is not None:
        password = _secret("password", server.password_file, server.password_env)
        both = base64.b64encode(f"{server.username}:{password}".encode()).decode()
        return {"Authorization": f"Basic {both}"}
    return {}


def _secret(what: str, file: str | None, variable: str | None) -> str:
    if file is not None:
        try:
            text = foreign.read(Path(_existing(file)), MOST_SECRET).decode()
        except (OSError, ValueError):
            raise InputError(f"prometheus.{what}_file: found no readable text in {file}, expected a {what}") from None
        where = f"prometheus.{what}_file: {file}"
    else:
        text = os.environ.get(variable or "", "")
        where = f"prometheus.{what}_env: {variable}"
    secret = text.strip()
    if not secret or not secret.isprintable() or not secret.isascii():
        raise InputError(f"{where}: found no {what}, expected one line of text")
    return secret


def _existing(file: str) -> str:
    if not Path(file).is_file():
        raise InputError(f"prometheus: found no file {file}, expected one")
    return file


def matcher(label: str, hosts: Sequence[str]) -> str:
    """The PromQL matcher of these hosts, with or without the port of their exporter."""
    names = "|".join(_SPECIAL.sub(r"\\\\\1", host.replace('"', "")) for host in hosts)
    return f'{label}=~"(?:{names})(?::[0-9]+)?"'
