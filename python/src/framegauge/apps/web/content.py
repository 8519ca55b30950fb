"""The site's data, the same in every run: persons, events, tags and images, all drawn from one seed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

__all__ = [
    "EVENTS",
    "IMAGES",
    "INDEXES",
    "PERSONS",
    "SCHEMA",
    "STATIC",
    "TABLES",
    "TAGS",
    "image",
    "image_bytes",
    "password",
    "rows",
    "tag",
    "text",
]

PERSONS = 500
EVENTS = 1000
TAGS = 50
IMAGES = 100  # of each kind; events and persons share them
TAGS_OF_EVENT = 3
GUESTS_OF_EVENT = 8
COMMENTS_OF_EVENT = 2
SMALLEST_POSTER_BYTES = 6_000
LARGEST_POSTER_BYTES = 40_000

SCHEMA = """
CREATE TABLE person (id serial PRIMARY KEY, name text UNIQUE NOT NULL, password text NOT NULL, about text NOT NULL);
CREATE TABLE event (id serial PRIMARY KEY, title text NOT NULL, about text NOT NULL, place text NOT NULL,
    day integer NOT NULL, owner integer NOT NULL REFERENCES person);
CREATE TABLE tagged (event integer NOT NULL REFERENCES event, tag text NOT NULL, PRIMARY KEY (event, tag));
CREATE TABLE guest (event integer NOT NULL REFERENCES event, person integer NOT NULL REFERENCES person,
    PRIMARY KEY (event, person));
CREATE TABLE comment (id serial PRIMARY KEY, event integer NOT NULL REFERENCES event,
    person integer NOT NULL REFERENCES person, words text NOT NULL);
"""
# After the rows, which is faster: indexes, and the numbers from which new rows count.
INDEXES = """
CREATE INDEX ON event (day, id);
CREATE INDEX ON tagged (tag, event);
CREATE INDEX ON guest (person);
CREATE INDEX ON comment (event);
SELECT setval('person_id_seq', (SELECT max(id) FROM person)), setval('event_id_seq', (SELECT max(id) FROM event));
ANALYZE;
"""
TABLES = {
    "person": ("id", "name", "password", "about"),
    "event": ("id", "title", "about", "place", "day", "owner"),
    "tagged": ("event", "tag"),
    "guest": ("event", "person"),
    "comment": ("event", "person", "words"),
}

_WORDS = [
    "open", "market", "winter", "summer", "river", "garden", "music", "reading", "walk", "train", "science",
    "history", "evening", "morning", "small", "large", "public", "annual", "old", "new", "town", "north", "south",
    "bridge", "library", "hall", "park", "school", "dance", "theatre", "film", "picture", "food", "bread", "coffee",
    "tea", "talk", "course", "game", "chess", "football", "cycling", "running", "swimming", "sewing", "repair",
]  # fmt: skip


def text(generator: random.Random, words: int) -> str:
    """So many words, with a capital at the front."""
    return " ".join(generator.choice(_WORDS) for _ in range(words)).capitalize()


def tag(number: int) -> str:
    """The name of a tag."""
    return f"{_WORDS[number % len(_WORDS)]}{number}"


def password(name: str) -> str:
    """The password of one of the persons that are there from the beginning."""
    return f"secret of {name}"


def rows(table: str) -> Iterator[tuple[int | str, ...]]:
    """The rows of a table, in the order of TABLES."""
    generator = random.Random(table)
    if table == "person":
        for number in range(1, PERSONS + 1):
            name = f"person{number}"
            yield number, name, password(name), text(generator, 25)
        return
    for number in range(1, EVENTS + 1):
        if table == "event":
            owner = generator.randint(1, PERSONS)
            yield number, text(generator, 5), text(generator, 60), text(generator, 3), number % 365, owner
        elif table == "tagged":
            yield from ((number, tag(choice)) for choice in generator.sample(range(TAGS), TAGS_OF_EVENT))
        elif table == "guest":
            yield from ((number, choice) for choice in generator.sample(range(1, PERSONS + 1), GUESTS_OF_EVENT))
        else:
            for _ in range(COMMENTS_OF_EVENT):
                yield number, generator.randint(1, PERSONS), text(generator, 12)


def image_bytes(kind: str, number: int, thumbnail_bytes: int) -> int:
    """The size of an image: thumbnails have one size, posters range evenly (in their logarithm) from 6 to 40 kB."""
    if kind == "thumbnail":
        return thumbnail_bytes
    ratio = LARGEST_POSTER_BYTES / SMALLEST_POSTER_BYTES
    return round(SMALLEST_POSTER_BYTES * math.pow(ratio, number / (IMAGES - 1)))


def image(kind: str, number: int, thumbnail_bytes: int) -> bytes:
    """The bytes of an image, which as those of real ones cannot be compressed."""
    return random.Random(f"{kind} {number}").randbytes(image_bytes(kind, number, thumbnail_bytes))


# What browsers keep: fetched once by each user.
STATIC = {
    "site.css": ("text/css", b"/* the looks of the site */\n" + b"body { margin: 0 auto; max-width: 60em; }\n" * 100),
    "site.js": ("text/javascript", b"/* what pages do */\n" + b"document.title = document.title.trim();\n" * 300),
}
