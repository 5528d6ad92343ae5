"""`ETag` and `If-Match`: a caller whose change would undo what somebody else changed meanwhile is told so instead, and
nothing is done.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from portal.core.errors import Refusal, refuse_if

IF_MATCH_LIMIT = 4000
CHANGED = Refusal(
    "changed_meanwhile",
    "If-Match does not match the current version: it was changed after you read it. Nothing was changed. Read it "
    "again, check the differences, and send the new ETag.",
    status=412,
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string", "maxLength": IF_MATCH_LIMIT},
    OpenApiParameter.HEADER,
    description="The `ETag` that was read, or several separated by commas. If none of them matches the current "
    "version, the call is refused with 412. `*` matches any version. Without this header, no version is checked.",
)
ETAG = OpenApiParameter(
    "ETag",
    str,
    OpenApiParameter.HEADER,
    response=True,
    description="For `If-Match`. Covers the fields that can be set, not read-only fields such as a status.",
)


def etag_of(*values: Any) -> str:
    """A strong one, of plain values and dates."""
    text = json.dumps(values, sort_keys=True, cls=_Exact)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def match_refusal(sent: str, current: str | None) -> Refusal | None:
    """`current` None: nothing is there, which no tag matches. Weak tags never match; what is no tag is none."""
    tags = parse_etags(sent) if len(sent) <= IF_MATCH_LIMIT else []
    return None if current is not None and ("*" in tags or current in tags) else CHANGED


@contextmanager
def if_match(request: Request, current: Callable[[], str | None]) -> Iterator[None]:
    """Around an action. `current` locks the row that the action changes, as it does itself, and gives its tag: who
    comes second waits there, and compares with what the first one left. Without the header nothing is asked.

    Raises Refused: changed_meanwhile (412).
    """
    sent = request.headers.get("If-Match")
    if sent is None:
        yield
        return
    with transaction.atomic():
        refuse_if(match_refusal(sent, current()))
        yield


class _Exact(DjangoJSONEncoder):
    """Times to the microsecond, which Django's own cuts."""

    def default(self, o: Any) -> Any:
        return o.isoformat() if hasattr(o, "isoformat") else super().default(o)
