"""`Idempotency-Key`: a call that the client repeats because the response was lost is not executed again."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection, transaction
from django.http import HttpResponse
from django.utils.crypto import salted_hmac
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor
from accounts.models import KeptAnswer
from portal.core.errors import refuse

KEY_LIMIT = 200
KEPT_FOR = timedelta(hours=24)
# Each call deletes up to this many old answers: more than it adds, so that they do not accumulate.
SWEPT = 100

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": KEY_LIMIT},
    OpenApiParameter.HEADER,
    description="A key that you choose for this call only. A repeated call with the same key within "
    f"{KEPT_FOR // timedelta(hours=1)} hours is not executed again and gets the first response.",
)
Handler = TypeVar("Handler", bound=Callable[..., Any])


def idempotent(check: Callable[..., object]) -> Callable[[Handler], Handler]:
    """For a handler whose calls may have a key. Only the response of a successful call is stored, in the transaction of
    that call: after a refusal the client may use the same key again. `check(request, **kwargs)` runs first and raises
    Refused for callers who may not (or no longer) see the object of the call.

    Do not use it for responses that contain a secret. Raises Refused: bad_key, key_reused (422), busy (409) while the
    first call with the key takes too long.
    """

    def decorated(handler: Handler) -> Handler:
        @functools.wraps(handler)
        def answered(self: Any, request: Request, **kwargs: Any) -> Response | HttpResponse:
            key = request.headers.get("Idempotency-Key")
            if key is None:
                return handler(self, request, **kwargs)  # type: ignore[no-any-return]
            check(request, **kwargs)
            if not (0 < len(key) <= KEY_LIMIT and key.isascii() and key.isprintable()):
                text = f"Idempotency-Key must be 1 to {KEY_LIMIT} printable ASCII characters. Send another, or none."
                raise refuse("bad_key", text, field="Idempotency-Key")
            with transaction.atomic():
                kept, is_new = _claimed(request, key)
                if not is_new:
                    return _again(kept)
                response: Response = handler(self, request, **kwargs)
                kept.status, kept.location = response.status_code, response.headers.get("Location", "")
                kept.body = JSONRenderer().render(response.data).decode()
                kept.save(update_fields=["status", "location", "body"])
            return response

        answered.takes_key = True  # type: ignore[attr-defined]
        return answered  # type: ignore[return-value]

    return decorated


def _claimed(request: Request, key: str) -> tuple[KeptAnswer, bool]:
    """Returns the key's row and whether this call created it. A second call waits here until the first one ends."""
    person, kept_s = actor(request).person, KEPT_FOR.total_seconds()
    call, *by_former_keys = _digests(request)
    with connection.cursor() as cursor:
        cursor.execute(_SWEEP, [kept_s, SWEPT, person.pk, key, kept_s])
        cursor.execute(_CLAIM, [person.pk, key, call])
        is_new = cursor.fetchone() is not None
    kept = KeptAnswer.objects.get(user=person, key=key)
    if kept.call not in (call, *by_former_keys):
        text = f"This key was used at {kept.at:%H:%M:%S} UTC for another call. Choose a new key for each call."
        raise refuse("key_reused", text, field="Idempotency-Key")
    return kept, is_new


def _again(kept: KeptAnswer) -> HttpResponse:
    """Replays the stored response byte for byte, even if the object has changed since then."""
    headers = {"Idempotent-Replayed": "true", **({"Location": kept.location} if kept.location else {})}
    return HttpResponse(kept.body, status=kept.status, content_type="application/json", headers=headers)


def _digests(request: Request) -> list[str]:
    """Digests of the call by SECRET_KEY and by those before. They are keyed (HMAC), so that values in bodies cannot be
    guessed from a copy of the table.
    """
    asked = [request.method, request.path, sorted(request.query_params.lists()), dict(request.data)]
    asked.append(actor(request).confined_to)
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False)
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return [salted_hmac("accounts.idempotency", text, key, algorithm="sha256").hexdigest() for key in keys]


_TABLE = KeptAnswer._meta.db_table
_SWEEP = f"""
DELETE FROM {_TABLE} WHERE id IN (
    SELECT id FROM {_TABLE} WHERE at < now() - make_interval(secs => %s) ORDER BY at LIMIT %s FOR UPDATE SKIP LOCKED)
 OR (user_id = %s AND key = %s AND at < now() - make_interval(secs => %s))"""
_CLAIM = (
    f"INSERT INTO {_TABLE} (user_id, key, call) VALUES (%s, %s, %s) ON CONFLICT (user_id, key) DO NOTHING RETURNING id"
)
