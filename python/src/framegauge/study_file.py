"""Reading a study file: every problem as one line with file, line, where, what was found and expected."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from framegauge.errors import StudyError
from framegauge.study import Study
from framegauge.study_types import Problem

__all__ = ["dump", "json_schema", "load", "load_preset", "parse", "presets"]

# What each of pydantic's error types expected, in the words of a study file.
_EXPECTED = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "a text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}


def load(path: str | Path) -> Study:
    """The study in a YAML file; StudyError names each problem, also a file that cannot be read."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise StudyError([f"{path}: found no readable file ({error.strerror}), expected a study file"]) from None
    except UnicodeDecodeError as error:
        raise StudyError([f"{path}: found bytes that are not UTF-8 at {error.start}, expected YAML"]) from None
    return parse(text, str(path))


def presets() -> list[str]:
    """Names of the studies that come with framegauge."""
    folder = resources.files("framegauge") / "presets"
    return sorted(item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml"))


def load_preset(name: str) -> Study:
    """One of `presets()`; StudyError names the nearest if there is no such preset."""
    if name not in presets():
        raise StudyError([f'--preset: found "{name}", expected one of {", ".join(presets())}'])
    text = (resources.files("framegauge") / "presets" / f"{name}.yaml").read_text("utf-8")
    return parse(text, f"preset {name}")


def parse(text: str, name: str) -> Study:
    """The study in `text`; `name` stands for the file in messages."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise StudyError([f"{name}:{line}: found {error.problem}, expected YAML"]) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise StudyError([f"{name}:1: found {str(error).splitlines()[0]}, expected YAML"]) from None
    if node is None or not isinstance(data, dict):
        raise StudyError([f"{name}:1: found no mapping, expected the keys {', '.join(Study.model_fields)}"])
    problems = [f"{name}:{line}: {where}: found twice, expected once" for line, where in _repeated(node, "")]
    if problems:
        raise StudyError(problems)
    try:
        return Study.model_validate(data)
    except ValidationError as error:
        # Unknown keys first: a misspelt key is often also a missing one.
        items = sorted(error.errors(include_url=False), key=lambda item: item["type"] != "extra_forbidden")
        lines = [_problem(name, node, item) for item in items]
        raise StudyError(list(dict.fromkeys(lines))) from None


def dump(study: Study) -> str:
    """The resolved study as YAML: every default written out; `parse` gives the same study again."""
    return yaml.safe_dump(study.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a study file, for editors."""
    schema = Study.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "framegauge study"} | schema


def _repeated(node: yaml.Node, where: str) -> Iterable[tuple[int, str]]:
    """Keys given twice: YAML would silently keep the last one."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            path = f"{where}.{key.value}".lstrip(".")
            if str(key.value) in seen:
                yield key.start_mark.line + 1, path
            seen.add(str(key.value))
            yield from _repeated(value, path)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _repeated(value, f"{where}.{index}")


def _locate(node: yaml.Node, path: Sequence[str | int]) -> tuple[int, list[str]]:
    """Line of the deepest node on `path` that the file has, and the part of the path that leads there."""
    line, matched = node.start_mark.line + 1, []
    for part in path:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if found is None:
                continue  # a step of pydantic's own, such as the name of a union's member
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
        matched.append(str(part))
    return line, matched


def _problem(name: str, root: yaml.Node, item: Mapping[str, Any]) -> str:
    """One of pydantic's errors as `file:line: where: found …, expected …`."""
    path, kind = list(item["loc"]), item["type"]
    context = item.get("ctx", {})
    if isinstance(context.get("error"), Problem):
        path += context["error"].path
    line, matched = _locate(root, path)
    head = f"{name}:{line}: {'.'.join(matched) or 'study'}"
    if kind == "extra_forbidden":
        return f"{head}: found an unknown key, expected {_nearest(path)}"
    if kind == "missing":
        where = ".".join([*matched, str(path[-1])])
        return f"{name}:{line}: {where}: found nothing, expected this key"
    if kind == "value_error":
        return f"{head}: {context['error']}"
    found = item["input"]
    shown = f'"{found}"' if isinstance(found, str) else json.dumps(found, default=str)
    expected = _EXPECTED.get(kind) or context.get("expected") or item["msg"][0].lower() + item["msg"][1:]
    return f"{head}: found {shown}, expected {expected}"


def _nearest(path: Sequence[str | int]) -> str:
    """What the unknown key at the end of `path` may have meant."""
    known = sorted(_keys(path[:-1]))
    close = difflib.get_close_matches(str(path[-1]), known, n=1, cutoff=0.5)
    return f'"{close[0]}"' if close else f"one of {', '.join(known)}"


def _keys(path: Sequence[str | int]) -> set[str]:
    """Keys that the JSON Schema allows at `path`."""
    schema = json_schema()
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
    found: list[Mapping[str, Any]] = []
    for node in nodes:
        if "$ref" in node:
            found += _expand(schema, [schema["$defs"][node["$ref"].rsplit("/", 1)[1]]])
        elif "anyOf" in node:
            found += _expand(schema, node["anyOf"])
        else:
            found.append(node)
    return found
