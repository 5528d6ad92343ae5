"""Decides several selected requests, each by itself: a refusal of one neither stops nor undoes another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import IntegrityError, OperationalError

from accounts.core.actor import Actor
from desk.inbox.evidence import usage_evidence
from portal.core.errors import Refused, get_or_refuse, refuse_if, to_refusal
from tenants.models import QuotaRequest
from tenants.requests import queries as request_queries
from tenants.requests.decisions import actions
from tenants.requests.decisions.types import Decision
from tenants.requests.queries import classes_of_request

OPEN_IT = "As requested, it exceeds an allocation limit. Open the request to approve fewer units or to overcommit."


@dataclass(frozen=True)
class DecisionResult:
    """The result of one request. `refusal`: why nothing of it was changed, or ""."""

    pk: int
    refusal: str


def decide_each(pks: Iterable[int], *, approve: bool, reason: str, by: Actor) -> list[DecisionResult]:
    """Decides in the given order, one transaction per request. Of each request it decides, as requested, the lines that
    are this user's to decide.

    Never overcommits.
    """
    return [DecisionResult(pk, _refusal(pk, approve=approve, reason=reason, by=by)) for pk in pks]


def _refusal(pk: int, *, approve: bool, reason: str, by: Actor) -> str:
    try:
        _decide(pk, approve=approve, reason=reason, by=by)
    except (Refused, IntegrityError, OperationalError) as error:
        refusal = to_refusal(error)
        if refusal is None:
            raise
        return OPEN_IT if refusal.code == "over_promised" else refusal.message
    return ""


def _decide(pk: int, *, approve: bool, reason: str, by: Actor) -> None:
    found = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant"), pk=pk)
    row = request_queries.request_rows([found], by=by)[0]
    if not row.to_decide:
        refuse_if(row.refusal or row.lines[0].refusal)
    facts = usage_evidence(found.tenant, classes_of_request(found)).plain
    decisions = [
        Decision(line.pk, approve=approve, reason=reason, measured=facts.get(line.gpu_class_id, {}))
        for line in row.to_decide
    ]
    actions.decide_request(pk, decisions, by=by)
