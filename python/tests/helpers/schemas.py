"""Documents held to JSON Schemas. Making a validator, and checking its schema, takes a thousand times what using it does."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

import jsonschema

__all__ = ["conforms"]


def conforms(document: Any, schema: Mapping[str, Any]) -> None:
    """jsonschema.ValidationError unless the document is as the schema says; jsonschema.SchemaError for a wrong schema.

    One part of a schema (`$ref` with `$defs`) is not checked itself: the whole is, where its own tests are.
    """
    _validator(json.dumps(schema, sort_keys=True)).validate(document)


@functools.cache
def _validator(text: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(text)
    if "$ref" not in schema:
        jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)
