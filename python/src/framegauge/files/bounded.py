"""YAML within limits: files that others wrote are read in bounded time and memory, and each error has its line.

Aliases are allowed, because people use them to write a list of hosts once. What counts is the document with every alias
written out: a few hundred bytes of nested aliases are otherwise a document of billions of nodes.
"""

from __future__ import annotations

from typing import Any

import yaml

from framegauge.errors import StudyError
from framegauge.printable import printable

__all__ = ["MOST_BYTES", "MOST_DEPTH", "MOST_NODES", "Excess", "compose"]

MOST_BYTES = 4 << 20
MOST_NODES = 100_000
MOST_DEPTH = 64
MOST_KEY = 1024  # characters, as of a simple key in YAML
MOST_SHOWN = 300  # characters of one error
MOST_DIGITS = 100  # of a number or a time; PyYAML takes quadratic time for some
LARGEST = 2**63
CORE = "tag:yaml.org,2002:"  # the beginning of the tags that are written with !!
NUMBERS = [CORE + kind for kind in ("int", "float", "timestamp")]


class Excess(StudyError):
    """A file beyond a limit: no other reader should try it either."""


def compose(text: str, name: str) -> tuple[yaml.Node | None, object]:
    """The nodes of `text` and their data, None if it is empty; StudyError with the line if it is not YAML, Excess if it
    is too large. `name` stands for the file in messages."""
    if len(text) > MOST_BYTES:
        raise Excess([f"{name}: found more than {MOST_BYTES} bytes, expected at most that many"])
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, None
        _measure(node, set(), {})
        return node, loader.construct_document(node)
    except _Beyond as error:
        raise Excess([f"{name}:{error.line}: {error}"]) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise StudyError([f"{name}:{line}: found a control character, expected YAML"]) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise StudyError([f"{name}:{mark.line + 1 if mark else 1}: {_said(error)}"]) from None
    except RecursionError:
        line = 1 if loader is None else loader.line + 1
        raise Excess([f"{name}:{line}: found deeper nesting, expected at most {MOST_DEPTH} levels"]) from None
    except Exception:  # PyYAML's constructors raise whatever their parsing runs into: KeyError, IndexError, …
        at = None if loader is None else loader.at
        line, kind = (1, "document") if at is None else (at.start_mark.line + 1, at.tag.replace(CORE, "!!"))
        raise StudyError([f"{name}:{line}: found an invalid {kind}, expected YAML"]) from None


def _said(error: yaml.MarkedYAMLError) -> str:
    """PyYAML's own words, as an error of ours."""
    message = str(error.context if str(error.context).startswith("found ") else error.problem or error.context)
    message = printable(message.replace(CORE, "!!"))[:MOST_SHOWN]
    if message.startswith("expected "):
        return message
    return f"found {message.removeprefix('but ').removeprefix('found ')}, expected YAML"


class _Beyond(Exception):
    """A limit that a node is beyond."""

    def __init__(self, node: yaml.Node | yaml.Event, found: str, expected: str) -> None:
        self.line = 1 + (node.start_mark.line if node.start_mark is not None else 0)
        super().__init__(f"found {found}, expected {expected}")


class _Loader(yaml.SafeLoader):
    """Counts what it composes, and remembers the node that it constructs."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.at: yaml.Node | None = None
        self._composed = 0
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """As the base class; _Beyond for more nodes than MOST_NODES, or deeper ones than MOST_DEPTH."""
        if self._depth == MOST_DEPTH:
            event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
            raise _too_deep(event)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        self._composed += 1
        if self._composed > MOST_NODES and node is not None:
            raise _too_many(node)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """As the base class; text and containers alone may be long."""
        self.at = node
        if isinstance(node, yaml.ScalarNode) and len(node.value) > MOST_DIGITS and node.tag in NUMBERS:
            raise yaml.constructor.ConstructorError(None, None, "a number of many digits", node.start_mark)
        return super().construct_object(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """As the base class, within 64 bits: larger numbers cannot be calculated with, nor printed."""
        number = super().construct_yaml_int(node)
        if not -LARGEST <= number < LARGEST:
            raise yaml.constructor.ConstructorError(None, None, "a whole number of more than 64 bits", node.start_mark)
        return number


_Loader.add_constructor(f"{CORE}int", _Loader.construct_yaml_int)


def _too_many(node: yaml.Node) -> _Beyond:
    return _Beyond(node, f"more than {MOST_NODES} values (aliases count as what they stand for)", "at most that many")


def _too_deep(node: yaml.Node | yaml.Event) -> _Beyond:
    return _Beyond(node, f"more than {MOST_DEPTH} levels of nesting", "at most that many")


def _measure(node: yaml.Node, around: set[int], sizes: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """The number of nodes below and with `node`, and its depth, with aliases written out; _Beyond at a limit.

    `around` are the nodes that this one is in, `sizes` those of nodes already measured: each is walked once.
    """
    if id(node) in sizes:
        return sizes[id(node)]
    if id(node) in around:
        raise _Beyond(node, "a value that contains itself", "no alias of what it is in")
    around.add(id(node))
    size, depth = 1, 0
    inner = [child for pair in node.value for child in pair] if isinstance(node, yaml.MappingNode) else node.value
    for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
        if not isinstance(key, yaml.ScalarNode) or len(key.value) > MOST_KEY:
            raise _Beyond(key, "a key that is a list, a mapping or long", f"text of at most {MOST_KEY} characters")
    for child in [] if isinstance(node, yaml.ScalarNode) else inner:
        nodes, levels = _measure(child, around, sizes)
        size, depth = size + nodes, max(depth, levels)
        if size > MOST_NODES:
            raise _too_many(child)
    if depth + 1 > MOST_DEPTH:
        raise _too_deep(node)
    around.discard(id(node))
    sizes[id(node)] = size, depth + 1
    return sizes[id(node)]
