"""The OpenAPI document of all apps as text, made once in each process."""

from __future__ import annotations

import functools
import json

from drf_spectacular.generators import SchemaGenerator


@functools.cache
def contract_text() -> bytes:
    """The OpenAPI document of all apps. It is the same for all users, and generating it takes 0.5 s."""
    document = SchemaGenerator().get_schema(request=None, public=True)
    return json.dumps(document, indent=1).encode()
