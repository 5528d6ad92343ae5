"""`ETag`, `If-Match`, `If-None-Match`: a call is refused if another caller has changed or created the object."""

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

from portal.core.errors import Refusal, Refused, refuse_if

IF_MATCH_LIMIT = 4000
CHANGED = Refusal(
    "changed_meanwhile",
    "If-Match does not match the current version: it was changed after you read it. Nothing was changed. Read it "
    "again, check the differences, and send the new ETag.",
    status=412,
)
EXISTS = Refusal(
    "already_exists",
    "If-None-Match allows this call only if the object does not exist, and it exists. Nothing was changed.",
    status=412,
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string", "maxLength": IF_MATCH_LIMIT},
    OpenApiParameter.HEADER,
    description="The `ETag` that was read, or several separated by commas. If none of them matches the current "
    "version, the call is refused with 412. `*` matches any version. Without this header, no version is checked.",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    {"type": "string", "maxLength": IF_MATCH_LIMIT},
    OpenApiParameter.HEADER,
    description="`*`: only create. If the object exists, the call is refused with 412 and changes nothing.",
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


def none_match_refusal(sent: str, current: str | None) -> Refusal | None:
    """The opposite of `match_refusal`, for If-None-Match."""
    tags = [one.removeprefix("W/") for one in parse_etags(sent)] if len(sent) <= IF_MATCH_LIMIT else ["*"]
    return EXISTS if current is not None and ("*" in tags or current in tags) else None


@contextmanager
def if_match(request: Request, current: Callable[[], str | None]) -> Iterator[Callable[[bool], None]]:
    """Checks `If-Match` and `If-None-Match`. Put it around an action. `current` locks the row that the action changes
    (as the action does) and returns its tag: a second caller waits there and then compares with the result of the
    first. Without the headers nothing is checked.

    An action that creates or replaces calls what this yields with whether it created: of two calls with
    `If-None-Match: *` at the same moment, there is no row to lock.

    Raises Refused: changed_meanwhile, already_exists (412).
    """
    sent, unwanted = request.headers.get("If-Match"), request.headers.get("If-None-Match")
    if sent is None and unwanted is None:
        yield lambda _is_new: None
        return

    def created(is_new: bool) -> None:
        if unwanted is not None and "*" in parse_etags(unwanted) and not is_new:
            raise Refused(EXISTS)

    with transaction.atomic():
        tag = current()
        if sent is not None:
            refuse_if(match_refusal(sent, tag))
        if unwanted is not None:
            refuse_if(none_match_refusal(unwanted, tag))
        yield created


class _Exact(DjangoJSONEncoder):
    """Keeps the microseconds of times, which DjangoJSONEncoder cuts off."""

    def default(self, o: Any) -> Any:
        return o.isoformat() if hasattr(o, "isoformat") else super().default(o)
