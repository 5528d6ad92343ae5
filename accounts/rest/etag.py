"""`ETag` and `If-Match`: a change is refused if another caller has changed the object in the meantime."""

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
    """Returns a strong ETag of plain values and dates."""
    text = json.dumps(values, sort_keys=True, cls=_Exact)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def match_refusal(sent: str, current: str | None) -> Refusal | None:
    """`current` None: there is no object, so no tag matches. Weak tags never match; invalid tags are ignored."""
    tags = parse_etags(sent) if len(sent) <= IF_MATCH_LIMIT else []
    return None if current is not None and ("*" in tags or current in tags) else CHANGED


@contextmanager
def if_match(request: Request, current: Callable[[], str | None]) -> Iterator[None]:
    """Put it around an action. `current` locks the row that the action changes (as the action does) and returns its
    tag: a second caller waits there and then compares with the result of the first. Without the header nothing is
    checked.

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
    """Keeps the microseconds of times, which DjangoJSONEncoder cuts off."""

    def default(self, o: Any) -> Any:
        return o.isoformat() if hasattr(o, "isoformat") else super().default(o)
