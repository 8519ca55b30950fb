"""Reading a YAML file into a model: every problem as one line with file, line, where, what was found and expected."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from framegauge.errors import StudyError
from framegauge.files import bounded
from framegauge.files.types import Problem, nearest
from framegauge.printable import printable
from framegauge.shipped import examples

__all__ = ["data", "json_schema", "keys", "parse", "read", "reader"]

MOST_SHOWN = 200  # characters of a value in an error
MOST_LINE = 2000
MOST_PROBLEMS = 50  # that are listed; a file of somebody else may have thousands

Shape = TypeVar("Shape", bound=BaseModel)

# What each type of pydantic error expected, in terms of a YAML file.
_EXPECTED = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "too_short": "at least {min_length} of them",
    "too_long": "at most {max_length} of them",
    "string_too_short": "text that is not empty",
    "invalid_key": "text as key",
}


_OF_A_TYPE = frozenset(kind for kind in _EXPECTED if kind.endswith("_type"))

# By the root of its messages, each kind of file: keys that no other kind has, its name, and what reads it.
_KINDS: Mapping[str, tuple[Sequence[set[str]], str, str]] = {
    "study": ([{"factors", "workloads"}], "a study file", "framegauge study"),
    "watch": ([{"change"}], "a watch file", "framegauge watch"),
    "rollout": ([{"mtu", "hosts"}, {"mtu", "inventory"}], "a roll-out's file", "framegauge rollout plan"),
    "document": ([{"figures"}], "a document of published figures", "framegauge reproduce"),
    "lab": ([{"network"}], "a lab file", "framegauge check --testbed"),
    "capture": ([], "a capture", "framegauge diagnose"),  # no YAML, but such a file may stand where one is expected
    "inventory": ([{"hosts"}], "an inventory", "framegauge hosts"),  # the last: others have this key beside their own
}


def read(path: str | Path, what: str) -> str:
    """The text of a file; StudyError if it cannot be read. `what` is the kind of file expected: "a study file"."""
    try:
        with Path(path).open("rb") as file:
            octets = file.read(bounded.MOST_BYTES + 1)
        if len(octets) > bounded.MOST_BYTES:
            raise bounded.Excess([f"{path}: found more than {bounded.MOST_BYTES} bytes, expected {what} of fewer"])
        return octets.decode("utf-8")
    except OSError as error:
        hint = examples.hint(path) if isinstance(error, FileNotFoundError) else ""
        raise StudyError([f"{path}: found no readable file ({error.strerror}), expected {what}{hint}"]) from None
    except UnicodeDecodeError as error:
        raise StudyError([f"{path}: found invalid UTF-8 at byte {error.start}, expected YAML"]) from None


def parse(
    text: str,
    name: str,
    model: type[Shape],
    root: str,
    rules: Callable[[Shape], Iterable[Problem]] = lambda _: (),
    context: Mapping[str, Any] | None = None,
    alter: Callable[[dict[str, Any]], None] = lambda _: None,
) -> Shape:
    """The `model` in `text`; in messages, `name` stands for the file and `root` for the whole of it.

    `rules` yields problems of a whole that the model itself accepts; `context` is passed to its validators. `alter`
    changes the values before they are validated; what it adds is not in the file, so problems with that have the line
    of the nearest place that is.
    """
    node, content = bounded.compose(text, name)
    if node is None or not isinstance(content, dict):
        raise StudyError([f"{name}:1: found no mapping, expected the keys {', '.join(_names(model))}"])
    problems = [f"{name}:{line}: {where}: found twice, expected once" for line, where in _repeated(node, ())]
    if problems:
        raise _error(name, problems)
    other = _other_kind(content, root)  # by what the file has, not by what is added to it
    alter(content)
    try:
        value = model.model_validate(content, context=dict(context or {}))
    except ValidationError as error:
        # Unknown keys first: a misspelt key is often also a missing one.
        items = _meant(node, error.errors(include_url=False))
        items.sort(key=lambda item: item["type"] != "extra_forbidden")
        if other is not None:
            raise StudyError([_instead(name, other, root)]) from None
        schema = json_schema(model, root)
        shown = [_problem(name, node, item, schema, root) for item in items[:MOST_PROBLEMS]]
        raise _error(name, shown, len(items) - len(shown)) from None
    broken = [_described(name, node, problem, root) for problem in rules(value)]
    if broken:
        raise _error(name, broken)
    return value


def _names(model: type[BaseModel]) -> list[str]:
    """Its keys, as files have them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _meant(node: yaml.Node, items: Sequence[Any]) -> list[Any]:
    """Without the problems of alternatives that were not meant: of a host that is a mapping with a wrong key, nobody
    has to know that text would do as well."""

    def is_meant(item: Any) -> bool:
        within, place = item["loc"][:-1], _locate(node, item["loc"])[1]
        is_alternative = bool(item["loc"]) and place == _locate(node, within)[1]
        if item["type"] not in _OF_A_TYPE or not is_alternative:
            return True
        besides = [other["loc"] for other in items if other["loc"][: len(within)] == within]
        return not any(len(_locate(node, loc)[1]) > len(place) for loc in besides)

    return list(filter(is_meant, items))


def _other_kind(content: Mapping[str, Any], root: str) -> tuple[str, str] | None:
    """The name of the kind of file that this is, and what reads it, if it is one of another kind than `root`."""
    if root not in _KINDS:
        return None
    kinds = [name for name, kind in _KINDS.items() if any(keys <= content.keys() for keys in kind[0])]
    # Others have the key of an inventory, too, so that the first is what it is.
    if not kinds or root in (kinds[:1] if root == "inventory" else kinds):
        return None
    return _KINDS[kinds[0]][1:]


def expected(text: str, name: str, root: str) -> str | None:
    """What is said of a file of another kind than `root`; None if it is of none that has keys of its own."""
    try:
        content = data(text, name)
    except StudyError:
        return None
    other = _other_kind(content, root) if isinstance(content, dict) else None
    return None if other is None else _instead(name, other, root)


def _instead(name: str, other: tuple[str, str], root: str) -> str:
    return f"{name}:1: found {other[0]}, expected {_KINDS[root][1]}: run {other[1]} {name}"


def _error(name: str, lines: Sequence[str], unsaid: int = 0) -> StudyError:
    """All problems, each once and in one line; of many the first, and how many more there are."""
    messages = list(dict.fromkeys(printable(line)[:MOST_LINE] for line in lines))
    unsaid += len(messages[MOST_PROBLEMS:])
    return StudyError([*messages[:MOST_PROBLEMS], *([f"{name}: and {unsaid} more problems"] if unsaid else [])])


def keys(text: str, name: str) -> set[str]:
    """The top-level keys of `text`, none if it is not a mapping; StudyError if it is not YAML."""
    content = data(text, name)
    return {str(key) for key in content} if isinstance(content, dict) else set()


def data(text: str, name: str) -> object:
    """What is in `text`, whatever it is; StudyError if it is not YAML."""
    return bounded.compose(text, name)[1]


def reader(given: set[str]) -> str | None:
    """The command that reads a file with these keys; None if it is of no kind that has keys of its own."""
    return next((kind[2] for kind in _KINDS.values() if any(keys <= given for keys in kind[0])), None)


# It takes far longer than reading a file, and programs that read many files need it for each bad one.
@cache
def json_schema(model: type[BaseModel], root: str) -> Mapping[str, Any]:
    """JSON Schema (2020-12) of a file, for editors."""
    schema = model.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"framegauge {root}"} | schema


def _repeated(node: yaml.Node, path: tuple[str, ...]) -> Iterable[tuple[int, str]]:
    """The keys that are given twice, of which YAML would silently keep the last."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                yield key.start_mark.line + 1, ".".join([*path, key.value])
            seen.add(key.value)
            yield from _repeated(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _repeated(value, (*path, str(index)))


def _locate(node: yaml.Node, path: Sequence[str | int]) -> tuple[int, list[str]]:
    """The line of the deepest node on `path` that is in the file, and the part of the path that leads there."""
    line, matched = node.start_mark.line + 1, []
    for part in path:
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if pair is None:
                continue  # a step that pydantic adds, such as the name of a union's member
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, str):
            continue  # a list that is short for a mapping
        else:
            break
        matched.append(str(part))
    return line, matched


def _described(name: str, node: yaml.Node, problem: Problem, root: str) -> str:
    line, matched = _locate(node, problem.path)
    return f"{name}:{line}: {'.'.join(matched) or root}: {problem}"


def _problem(name: str, node: yaml.Node, item: Mapping[str, Any], schema: Mapping[str, Any], root: str) -> str:
    """One of pydantic's errors as `file:line: where: found …, expected …`."""
    path, kind = list(item["loc"]), item["type"]
    context = item.get("ctx", {})
    if isinstance(context.get("error"), Problem):
        path += context["error"].path
    line, matched = _locate(node, path)
    head = f"{name}:{line}: {'.'.join(matched) or root}"
    if kind == "extra_forbidden":
        return f"{head}: found an unknown key, expected {_nearest(schema, path)}"
    if kind == "missing":
        where = ".".join([*matched, str(path[-1])])
        return f"{name}:{line}: {where}: found nothing, expected this key"
    if kind == "value_error":
        return f"{head}: {context['error']}"
    shown = _shown(item["input"])
    expected = (
        _EXPECTED.get(kind, "").format_map(context)
        or context.get("expected")
        or item["msg"][0].lower() + item["msg"][1:]
    )
    return f"{head}: found {shown}, expected {expected}"


def _shown(value: object) -> str:
    """A value in an error; a long one is cut off."""
    try:
        text = f'"{value}"' if isinstance(value, str) else json.dumps(value, default=str)
    except TypeError:  # keys that JSON has not: dates, tuples
        text = str(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _nearest(schema: Mapping[str, Any], path: Sequence[str | int]) -> str:
    """The known keys most similar to the unknown one at the end of `path`."""
    return nearest(str(path[-1]), _keys(schema, path[:-1]))


def _keys(schema: Mapping[str, Any], path: Sequence[str | int]) -> set[str]:
    """Keys that the JSON Schema allows at `path`."""
    nodes = _expand(schema, [schema])
    for part in path:
        steps = [
            node["items"] if isinstance(part, int) and "items" in node else node.get("properties", {}).get(part)
            for node in nodes
        ]
        nodes = _expand(schema, [step for step in steps if step is not None]) or nodes
    return {key for node in nodes for key in node.get("properties", {})}


def _expand(schema: Mapping[str, Any], nodes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The nodes with references and alternatives resolved."""
    expanded: list[Mapping[str, Any]] = []
    for node in nodes:
        if "$ref" in node:
            expanded += _expand(schema, [schema["$defs"][node["$ref"].rsplit("/", 1)[1]]])
        elif "anyOf" in node or "oneOf" in node:
            expanded += _expand(schema, [*node.get("anyOf", ()), *node.get("oneOf", ())])
        else:
            expanded.append(node)
    return expanded
