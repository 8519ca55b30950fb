"""The site: an application server of the event calendar, with Starlette on uvicorn.

Rows are in PostgreSQL, sessions and the first page in memcached, images on the file server (NFS).
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import aiomcache
import asyncpg
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from framegauge.apps.web import content, pages
from framegauge.apps.web.files import FileServer

__all__ = ["Site", "main"]

CONNECTIONS = 4  # of a server to the database, to memcached and to the file server each
LISTED = 6  # events of a list
SESSION_SECONDS = 3600
HOME_SECONDS = 10  # for which the first page is kept
KEEP_ALIVE_SECONDS = 3600  # longer than any run: the balancer's connections stay
RENEW_SECONDS = 20
DATABASE = "postgres"


Page = Callable[[Request], Awaitable[Response]]


class _Cache:
    """memcached, over connections that stay open, or over one for each call."""

    def __init__(self, address: str, keeps_open: bool) -> None:
        self._address = address
        self._open = self._client(CONNECTIONS) if keeps_open else None

    async def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        value: bytes | None = await self._call(lambda client: client.get(key))
        return value

    async def set(self, key: bytes, value: bytes, seconds: int) -> None:
        """Keeps a value for so long."""
        await self._call(lambda client: client.set(key, value, seconds))

    async def _call(self, ask: Callable[[Any], Awaitable[Any]]) -> Any:
        if self._open is not None:
            return await ask(self._open)
        client = self._client(1)
        try:
            return await ask(client)
        finally:
            await client.close()

    def _client(self, connections: int) -> Any:
        return aiomcache.Client(self._address, 11211, pool_size=connections)


class Site:
    """One application server; its pages are methods."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked
        self._threads = ThreadPoolExecutor(CONNECTIONS)
        self._database: Any = None
        self._cache: Any = None
        self._files: Any = None

    def application(self) -> Starlette:
        """The routes."""
        routes = [
            Route("/", self._page(self.home)),
            Route("/login", self._page(self.login), methods=["POST"]),
            Route("/event/{number:int}", self._page(self.event)),
            Route("/person/{number:int}", self._page(self.person)),
            Route("/tag/{tag}", self._page(self.search)),
            Route("/event", self._page(self.add_event), methods=["POST"]),
            Route("/person", self._page(self.add_person), methods=["POST"]),
            Route("/image/{kind}/{number:int}", self.image),
            Route("/static/{name}", self.static),
        ]
        return Starlette(routes=routes, lifespan=self._connected)

    @asynccontextmanager
    async def _connected(self, _application: Starlette) -> AsyncIterator[None]:
        options = self._asked
        self._files = FileServer(f"nfs://{_in_url(options.files)}/files?version=4", CONNECTIONS)
        self._cache = _Cache(options.memcached, options.keep_alive)
        # Without any that stay open, a pool closes each connection after its first query.
        pool_settings = {"min_size": CONNECTIONS} if options.keep_alive else {"min_size": 0, "max_queries": 1}
        self._database = await asyncpg.create_pool(
            host=options.database, user="postgres", database=DATABASE, max_size=CONNECTIONS, **pool_settings
        )
        if options.fill:
            await self._fill()
        renewing = asyncio.create_task(self._renew())
        yield
        renewing.cancel()

    def _page(self, page: Page) -> Page:
        """A page that takes its CPU time and its waiting as asked, beside what making it takes."""
        options = self._asked

        async def slowly(request: Request) -> Response:
            end = time.thread_time() + options.page_cpu
            while time.thread_time() < end:
                pass
            await asyncio.sleep(options.page_wait)
            return await page(request)

        return slowly if options.page_cpu or options.page_wait else page

    async def _renew(self) -> None:
        """Uses every connection to the file server from time to time: libnfs does not renew its leases, of 60 s."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            for _ in range(CONNECTIONS):
                await self._read("/thumbnail/0")

    async def _read(self, name: str) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._files.read, name)

    async def _fill(self) -> None:
        async with self._database.acquire() as connection, connection.transaction():
            await connection.execute(content.SCHEMA)
            for table, columns in content.TABLES.items():
                await connection.copy_records_to_table(table, records=content.rows(table), columns=columns)
            await connection.execute(content.INDEXES)

    async def home(self, _request: Request) -> Response:
        """The next events; from memcached as long as it has the page."""
        if (cached := await self._cache.get(b"home")) is not None:
            return _html(cached)
        events = await self._database.fetch("SELECT * FROM event WHERE day >= 100 ORDER BY day, id LIMIT $1", LISTED)
        page = pages.home(events).encode()
        await self._cache.set(b"home", page, HOME_SECONDS)
        return _html(page)

    async def login(self, request: Request) -> Response:
        """Checks the password, and begins a session."""
        form = await _form(request)
        row = await self._database.fetchrow("SELECT * FROM person WHERE name = $1", form["name"])
        if row is None or row["password"] != form["password"]:
            return HTMLResponse("no such person, or another password", 403)
        token = secrets.token_hex(16)
        await self._cache.set(f"session-{token}".encode(), str(row["id"]).encode(), SESSION_SECONDS)
        return await self._person(row, {"set-cookie": f"session={token}; Path=/"})

    async def event(self, request: Request) -> Response:
        """An event with all that belongs to it."""
        return await self._event(request.path_params["number"])

    async def _event(self, number: int) -> Response:
        event = await self._database.fetchrow("SELECT * FROM event WHERE id = $1", number)
        if event is None:
            return HTMLResponse("no such event", 404)
        tags = await self._database.fetch("SELECT tag FROM tagged WHERE event = $1 ORDER BY tag", number)
        guests = await self._database.fetch(
            "SELECT id, name FROM guest JOIN person ON person = id WHERE event = $1 ORDER BY id LIMIT 20", number
        )
        comments = await self._database.fetch(
            "SELECT name, words FROM comment JOIN person ON person = person.id WHERE event = $1 ORDER BY comment.id",
            number,
        )
        return _html(pages.event(event, [row["tag"] for row in tags], guests, comments).encode())

    async def person(self, request: Request) -> Response:
        """A person."""
        row = await self._database.fetchrow("SELECT * FROM person WHERE id = $1", request.path_params["number"])
        return HTMLResponse("no such person", 404) if row is None else await self._person(row, {})

    async def _person(self, row: Any, headers: dict[str, str]) -> Response:
        events = await self._database.fetch(
            "SELECT id, title FROM guest JOIN event ON event = id WHERE person = $1 ORDER BY day LIMIT 10", row["id"]
        )
        return _html(pages.person(row, events).encode(), headers)

    async def search(self, request: Request) -> Response:
        """The events with a tag."""
        tag = request.path_params["tag"]
        events = await self._database.fetch(
            "SELECT event.* FROM tagged JOIN event ON event = id WHERE tag = $1 ORDER BY day, id LIMIT $2", tag, LISTED
        )
        return _html(pages.search(tag, events).encode())

    async def add_event(self, request: Request) -> Response:
        """A new event of the person whose session it is."""
        token = request.cookies.get("session", "")
        owner = await self._cache.get(f"session-{token}".encode())
        if owner is None:
            return HTMLResponse("log in first", 403)
        form = await _form(request)
        async with self._database.acquire() as connection, connection.transaction():
            number = await connection.fetchval(
                "INSERT INTO event (title, about, place, day, owner) VALUES ($1, $2, $3, $4, $5) RETURNING id",
                form["title"], form["about"], form["place"], int(form["day"]), int(owner),
            )  # fmt: skip
            await connection.execute("INSERT INTO tagged VALUES ($1, $2)", number, form["tag"])
            await connection.execute("INSERT INTO guest VALUES ($1, $2)", number, int(owner))
        return await self._event(number)

    async def add_person(self, request: Request) -> Response:
        """A new person."""
        form = await _form(request)
        row = await self._database.fetchrow(
            "INSERT INTO person (name, password, about) VALUES ($1, $2, $3) RETURNING *",
            form["name"], form["password"], form["about"],
        )  # fmt: skip
        return await self._person(row, {})

    async def image(self, request: Request) -> Response:
        """An image, from the file server."""
        name = f"/{request.path_params['kind']}/{request.path_params['number']}"
        return Response(await self._read(name), media_type="image/jpeg")

    async def static(self, request: Request) -> Response:
        """The style and the script, which each server has itself."""
        media_type, data = content.STATIC[request.path_params["name"]]
        return Response(data, media_type=media_type)


def _html(data: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(data, media_type="text/html", headers=headers)


async def _form(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def main() -> None:
    """One application server, until it is ended."""
    parser = argparse.ArgumentParser(description="An application server of the event calendar.")
    for name in ("address", "database", "memcached", "files"):
        parser.add_argument(f"--{name}", required=True, help="an IP address")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--no-keep-alive", dest="keep_alive", action="store_false", help="a connection per query")
    parser.add_argument("--page-cpu", type=float, default=0.0, help="CPU time of a page beside its own, in seconds")
    parser.add_argument("--page-wait", type=float, default=0.0, help="waiting of a page, in seconds")
    parser.add_argument("--fill", action="store_true", help="make the tables and their rows first")
    options = parser.parse_args()
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))  # a connection for each request under way
    uvicorn.run(
        Site(options).application(), host=options.address, port=options.port, loop="uvloop", http="httptools",
        access_log=False, log_level="warning", timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )  # fmt: skip


if __name__ == "__main__":
    main()
