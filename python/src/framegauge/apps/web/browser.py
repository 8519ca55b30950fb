"""A browser, as far as the site needs one: connections that stay open, cookies, and what it keeps."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence

from framegauge.apps.web import content, pages
from framegauge.apps.web.ledger import Ledger
from framegauge.apps.web.visits import Request

__all__ = ["COUNT_PATH", "Browser"]

COUNT_PATH = "/requests-received"  # where the balancer tells its own count
_PART = re.compile(r'(?:src|href)="(/(?:static|image)/[^"]+)"')
_COOKIE = re.compile(r"session=[0-9a-f]+")


class Wrong(Exception):
    """An answer that is not as it must be."""


class _Connection:
    """One connection, opened when it is first needed."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, cookie: str, form: str) -> tuple[dict[str, str], bytes]:
        """The headers and the body of an answer with status 200 and the length that it states."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}", "User-Agent: framegauge"]
        if cookie:
            lines.append(f"Cookie: {cookie}")
        if method == "POST":
            lines += ["Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(form)}"]
        writer.write("\r\n".join([*lines, "", form]).encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = head[0].split()
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        if len(status) < 2 or status[1] != "200" or not headers.get("content-length", "").isdecimal():
            raise Wrong(
                f"found {head[0]!r} with length {headers.get('content-length')}, expected status 200 and a length"
            )
        return headers, await reader.readexactly(int(headers["content-length"]))

    def close(self) -> None:
        """Closes it."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Browser:
    """The browser of one user. `ledger` counts every request."""

    def __init__(self, host: str, port: int, thumbnail_bytes: int, ledger: Ledger, connections: int = 2) -> None:
        self._connections = [_Connection(host, port) for _ in range(connections)]
        self._thumbnail_bytes, self._ledger = thumbnail_bytes, ledger
        self._cookie = ""
        self._kept: set[str] = set()

    async def show(self, request: Request) -> bool:
        """A page with all of its parts; whether everything came as it must."""
        page = await self._counted("page", request.path, lambda: self._page(request))
        if page is None:
            return False
        paths = [path for path in dict.fromkeys(_PART.findall(page)) if path not in self._kept]
        connections = len(self._connections)
        shares = [paths[index::connections] for index in range(connections)]
        done = await asyncio.gather(*(self._parts(index, share) for index, share in enumerate(shares)))
        return all(done)

    async def count(self) -> int:
        """The number of requests that the balancer has counted by itself, this one left out, which no ledger counts."""
        _, body = await self._connections[0].ask("GET", COUNT_PATH, "", "")
        # "… server accepts handled requests\n 8 8 120 \n…": nginx, ngx_http_stub_status_module.
        return int(body.split(b"requests", 1)[1].split()[2]) - 1

    def close(self) -> None:
        """Closes its connections."""
        for connection in self._connections:
            connection.close()

    async def _page(self, request: Request) -> bytes:
        headers, body = await self._connections[0].ask(request.method, request.path, self._cookie, request.form)
        text = body.decode()
        if request.sign not in text or not text.endswith(pages.END):
            raise Wrong(f"found a page without {request.sign!r} or without an end, expected it whole")
        if (match := _COOKIE.match(headers.get("set-cookie", ""))) is not None:
            self._cookie = match[0]
        return body

    async def _parts(self, index: int, paths: Sequence[str]) -> bool:
        """Parts one after the other on one of the connections."""
        for path in paths:
            kind = path.split("/")[2] if path.startswith("/image/") else "static"
            if await self._counted(kind, path, lambda path=path: self._part(index, path)) is None:  # type: ignore[misc]
                return False
            if kind == "static":
                self._kept.add(path)
        return True

    async def _part(self, index: int, path: str) -> bytes:
        _, body = await self._connections[index].ask("GET", path, self._cookie, "")
        kind, name = path.split("/")[2:4] if path.startswith("/image/") else ("static", path.split("/")[2])
        if kind == "static":
            expected = len(content.STATIC[name][1])
        else:
            expected = content.image_bytes(kind, int(name), self._thumbnail_bytes)
        if len(body) != expected:
            raise Wrong(f"found {len(body)} bytes, expected {expected}")
        return body

    async def _counted(self, kind: str, path: str, ask: Callable[[], Awaitable[bytes]]) -> str | None:
        """The answer's text, counted; None if it failed, after which all connections are new."""
        begin = time.monotonic()
        self._ledger.sent += 1
        try:
            body = await ask()
        except (OSError, EOFError, asyncio.LimitOverrunError, Wrong, UnicodeDecodeError) as error:
            self._ledger.failed(path, error)
            self.close()
            return None
        except asyncio.CancelledError:
            self._ledger.failed(path, TimeoutError("no answer before the end of the run"))
            raise
        self._ledger.answered(kind, len(body), begin, time.monotonic())
        return body.decode("latin-1")
