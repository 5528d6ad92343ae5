"""Refusals that users read: the value, how to raise it, and how other errors are converted to one.

`policy` returns a Refusal, `actions` raise Refused, and views do not catch it. portal/web/refusals.py renders it, so
that browser, API and admin show the same sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, cast

import structlog
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied, RequestDataTooBig, ValidationError
from django.db import DataError, IntegrityError, OperationalError
from django.db.models import Model, QuerySet
from django.http import Http404
from rest_framework import exceptions as drf

from portal.core import validation_messages
from portal.core.codes import Code

log = structlog.get_logger(__name__)
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Refusal:
    """Reason of a refusal. `code` is part of the API (lower case); `message` names the field, the numbers and what to
    do instead.
    """

    code: Code
    message: str
    field: str | None = None
    status: int = 422
    retry_after_s: int | None = None

    def body(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "field": self.field}


class Refused(Exception):
    """An action was refused. Nothing was changed."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal

    @property
    def code(self) -> str:
        return self.refusal.code


def refuse(code: Code, message: str, *, field: str | None = None, status: int = 422) -> Refused:
    return Refused(Refusal(code, message, field, status))


def refuse_if(refusal: Refusal | None) -> None:
    if refusal is not None:
        raise Refused(refusal)


NOT_FOUND = Refusal("not_found", "Not found: the address is wrong, or you are not a member of its team.", status=404)
NOT_ALLOWED = Refusal("not_allowed", "Permission denied: this action requires another role.", status=403)
NOT_SIGNED_IN = Refusal(
    "not_signed_in", "Sign in, or send a valid token as 'Authorization: Bearer <token>'.", status=401
)


def get_or_refuse(rows: QuerySet[Row], **lookup: Any) -> Row:
    """Returns the one row or raises Refused(NOT_FOUND). Pass `visible_to(actor)` rows: invisible rows are not found."""
    try:
        return rows.get(**lookup)
    except (ObjectDoesNotExist, ValueError, ValidationError, DataError) as error:
        # A value that cannot be a key ("x", 99999999999999999999, a NUL) is not found either.
        raise Refused(NOT_FOUND) from error


TOO_LARGE = Refusal("too_large", "The request is too large. The limit is 1 MiB.", status=413)
CONFLICT = Refusal(
    "conflict",
    "The change conflicts with the stored data, which may have just changed. Reload and try again.",
    status=409,
)
BUSY = Refusal(
    "busy",
    "Another change of the same object is in progress. Try again in a few seconds.",
    status=409,
    retry_after_s=2,
)
DATABASE_AWAY = Refusal(
    "database_unavailable",
    "The portal's database does not answer. Try again in a few seconds.",
    status=503,
    retry_after_s=5,
)
# PostgreSQL: foreign key, unique, check, exclusion · lock not available, deadlock, serialisation.
CONFLICT_STATES = {"23503", "23505", "23514", "23P01"}
BUSY_STATES = {"55P03", "40P01", "40001"}

# Constraint name → code, sentence for the user and field. Models write the constraint names by hand.
CONSTRAINT_SENTENCES: dict[str, tuple[Code, str, str | None]] = {}


def constraint_sentence(name: str, code: Code, message: str, *, field: str | None = None) -> None:
    """Register the sentence that the user reads after a violation. Call it beside the constraint's definition."""
    CONSTRAINT_SENTENCES[name] = (code, message, field)


def from_database_error(error: IntegrityError | OperationalError) -> Refusal | None:
    """The refusal for a PostgreSQL error. None: a bug of ours (e.g. a missing value), which must show as an error."""
    state = getattr(error.__cause__, "sqlstate", None) or ""
    name = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None) or ""
    if name in CONSTRAINT_SENTENCES:
        code, message, field = CONSTRAINT_SENTENCES[name]
        return Refusal(code, message, field, status=409)
    if state in BUSY_STATES:
        return BUSY
    if isinstance(error, OperationalError):
        return DATABASE_AWAY
    if state not in CONFLICT_STATES:
        return None
    log.warning("constraint_without_sentence", constraint=name)
    return CONFLICT


def to_refusal(exception: Exception) -> Refusal | None:
    if isinstance(exception, Refused):
        return exception.refusal
    if isinstance(exception, IntegrityError | OperationalError):
        return from_database_error(exception)
    if isinstance(exception, Http404 | drf.NotFound):
        return NOT_FOUND
    if isinstance(exception, drf.NotAuthenticated | drf.AuthenticationFailed):
        return NOT_SIGNED_IN
    if isinstance(exception, PermissionDenied | drf.PermissionDenied):
        return NOT_ALLOWED
    if isinstance(exception, drf.Throttled):
        wait_s = int(getattr(exception, "wait", None) or 1) + 1
        return Refusal(
            "too_many_requests",
            f"Too many requests with this token. Try again in {wait_s} s.",
            status=429,
            retry_after_s=wait_s,
        )
    if isinstance(exception, drf.ValidationError):
        field, said = _first_problem(exception.detail)
        code = getattr(said, "code", "")
        text = validation_messages.validation_message(field, code, str(said))
        return Refusal("unknown_field" if code == validation_messages.UNKNOWN else "invalid", text, field)
    if isinstance(exception, ValidationError):
        return Refusal("invalid", " ".join(exception.messages))
    if isinstance(exception, RequestDataTooBig):
        return TOO_LARGE
    if isinstance(exception, drf.APIException):
        # Three codes of DRF remain; portal/core/codes.py lists them.
        return Refusal(cast(Code, exception.default_code), str(exception.detail), status=exception.status_code)
    return None


def _first_problem(detail: Any, path: str = "") -> tuple[str | None, Any]:
    """The first field in DRF's nested error structure, and its message. Forms show one error at a time, too."""
    if isinstance(detail, dict):
        key, value = next(iter(detail.items()))
        if key == "non_field_errors":
            return _first_problem(value, path)
        inner = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}"
        return _first_problem(value, inner.removeprefix("."))
    if isinstance(detail, list):
        for index, item in enumerate(detail):
            if isinstance(item, dict | list):
                if item:
                    return _first_problem(item, f"{path}[{index}]" if path else path)
                continue
            return path or None, item
        return path or None, "Invalid value."
    return path or None, detail
