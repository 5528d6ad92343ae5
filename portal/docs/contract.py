"""The OpenAPI document of all apps as text, made once in each process."""

from __future__ import annotations

import functools
import json

from drf_spectacular.generators import SchemaGenerator


@functools.cache
def contract_text() -> bytes:
    """The OpenAPI document of all apps: the same for everybody, and half a second of work."""
    document = SchemaGenerator().get_schema(request=None, public=True)
    return json.dumps(document, indent=1).encode()
