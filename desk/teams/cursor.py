"""The cursor of the list of teams: the sort order and the key of the last row, as text for a URL."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import datetime
from typing import Any

from desk.teams.sql import SORTS, TeamRecord
from portal.core.errors import refuse


def encode_cursor(sort: str, last: TeamRecord) -> str:
    text = json.dumps(["teams", sort, *SORTS[sort].key(last)], separators=(",", ":"), default=datetime.isoformat)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(sort: str, cursor: str) -> list[Any]:
    """Raises Refused (bad_cursor) for text that is not a cursor of this order."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        of_list, order, *raw = json.loads(base64.urlsafe_b64decode(padded))
        if (of_list, order) != ("teams", sort):
            raise ValueError(order)
        return [_value(kind, value) for kind, value in zip(SORTS[sort].kinds, raw, strict=True)]
    except (ValueError, TypeError, OverflowError, binascii.Error, RecursionError) as error:
        text = "This cursor does not belong to this list. Start again without it."
        raise refuse("bad_cursor", text, field="cursor") from error


def _value(kind: type, value: Any) -> Any:
    if kind is datetime:
        at = datetime.fromisoformat(value)
        if at.tzinfo is None:
            raise ValueError(value)
        return at
    is_text = kind is str and type(value) is str and "\0" not in value
    is_number = kind is int and type(value) is int and abs(value) < 2**63
    if not (is_text or is_number):
        raise ValueError(value)
    return value
