"""The cursor of the queue's pages: the sort key of the last run, as text for a URL."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import datetime
from typing import Any

from desk.queue.sql import QueueRecord
from portal.core.errors import refuse


def sort_key(one: QueueRecord) -> list[Any]:
    return [one.gpu_class, one.team, one.is_outside, one.lower, one.since, one.uid, one.run]


def encode_cursor(last: QueueRecord) -> str:
    text = json.dumps(["queue", *sort_key(last)], separators=(",", ":"), default=datetime.isoformat)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> list[Any]:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        order, gpu_class, team, is_outside, lower, since, uid, run = json.loads(base64.urlsafe_b64decode(padded))
        if order != "queue" or not all(isinstance(text, str) and "\0" not in text for text in (gpu_class, team, uid)):
            raise ValueError(order)
        numbers = [int(is_outside), int(lower), int(run)]
        if any(abs(number) >= 2**31 for number in numbers):
            raise ValueError(numbers)
        at = datetime.fromisoformat(since)
        if at.tzinfo is None:
            raise ValueError(since)
        return [gpu_class, team, numbers[0], numbers[1], at, uid, numbers[2]]
    except (ValueError, TypeError, OverflowError, binascii.Error, RecursionError) as error:
        text = "This cursor does not belong to this list. Start again without it."
        raise refuse("bad_cursor", text, field="cursor") from error
