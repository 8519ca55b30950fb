"""What users do: the operations of the site, their mix, and the times to think between them. All drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from framegauge.apps.web import content

__all__ = ["MIX", "Request", "Visit"]

# The share of each operation in percent.
MIX = {"home": 26, "login": 10, "event": 28, "person": 8, "search": 20, "add_event": 5, "add_person": 3}
MOST_THINK = 5  # times the mean: longer times to think are cut there


@dataclass(frozen=True)
class Request:
    """A request for a page. `sign` stands in every right answer."""

    operation: str
    method: str
    path: str
    sign: str
    form: str = ""


class Visit:
    """One user: a generator of their own decides what they do and how long they think."""

    def __init__(self, seed: int, user: int, think_seconds: float) -> None:
        self._generator = random.Random(f"{seed} {user}")
        self._user, self._think, self._added = user, think_seconds, 0

    def requests(self) -> Iterator[Request]:
        """What the user does, without end. They log in first."""
        yield self._request("login")
        while True:
            yield self._request(self._generator.choices(list(MIX), list(MIX.values()))[0])

    def think_seconds(self) -> float:
        """A time to think: exponential, at most five times the mean."""
        if self._think == 0:
            return 0.0
        return min(self._generator.expovariate(1 / self._think), MOST_THINK * self._think)

    def _request(self, operation: str) -> Request:
        generator = self._generator
        if operation == "home":
            return Request(operation, "GET", "/", "<h1>What is on</h1>")
        if operation == "login":
            name = f"person{1 + self._user % content.PERSONS}"
            form = urlencode({"name": name, "password": content.password(name)})
            return Request(operation, "POST", "/login", f"<h1>{name}</h1>", form)
        if operation == "event":
            number = generator.randint(1, content.EVENTS)
            return Request(operation, "GET", f"/event/{number}", f'"/image/poster/{number % content.IMAGES}"')
        if operation == "person":
            number = generator.randint(1, content.PERSONS)
            return Request(operation, "GET", f"/person/{number}", f"<h1>person{number}</h1>")
        if operation == "search":
            tag = content.tag(generator.randrange(content.TAGS))
            return Request(operation, "GET", f"/tag/{tag}", f"<h1>Events with {tag}</h1>")
        self._added += 1
        title = f"{content.text(generator, 4)} {self._user}-{self._added}"
        if operation == "add_event":
            place, tag = content.text(generator, 2), content.tag(generator.randrange(content.TAGS))
            fields = {"title": title, "about": content.text(generator, 40), "place": place, "day": "50", "tag": tag}
            return Request(operation, "POST", "/event", f"<h1>{title}</h1>", urlencode(fields))
        name = f"new{self._user}-{self._added}"
        form = urlencode({"name": name, "password": "new", "about": content.text(generator, 20)})
        return Request(operation, "POST", "/person", f"<h1>{name}</h1>", form)
