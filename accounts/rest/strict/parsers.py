"""Bodies of API requests: one JSON object without ambiguous content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.parsers import BaseParser

from portal.core.errors import refuse


class ObjectParser(BaseParser):
    """Refuses input that other parsers interpret differently: duplicate keys, NaN, a list or text at the top level,
    invalid Unicode.
    """

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        raw = stream.read(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
        if len(raw) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise RequestDataTooBig
        try:
            body = json.loads(raw.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
            json.dumps(body, ensure_ascii=False).encode()  # half a surrogate pair cannot be stored
        except (ValueError, RecursionError) as error:
            raise refuse("not_json", "The body is not valid JSON (UTF-8).", status=400) from error
        if not isinstance(body, dict):
            raise refuse("not_an_object", 'The body must be a JSON object: {"name": …}.', status=400)
        return body


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise refuse(
                "duplicate_key", f"The key {key[:60]!r} appears twice in one object.", field=key[:60], status=400
            )
        found[key] = value
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)
