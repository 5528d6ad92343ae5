"""The page of the inbox: three groups, what a selection would allocate, and decisions about the selection."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Exists, Min, OuterRef
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from accounts.rest.paging import LIMIT_DEFAULT, page_of
from catalog.models import GpuClass
from desk.inbox import bulk_decisions, queries
from desk.inbox.bulk_decisions import DecisionResult
from desk.inbox.queries import InboxFilter, InboxRow
from desk.inbox.selection import selection_of
from portal.core.errors import refuse_if
from tenants.approvers import policy as approver_policy
from tenants.approvers import queries as approver_queries
from tenants.approvers.policy import ApproverRights
from tenants.approvers.queries import lines_decided_by
from tenants.models import QuotaLine
from tenants.onboarding.team_requests import queries as team_request_queries
from tenants.requests import queries as request_queries
from tenants.requests import shown
from tenants.requests.decisions import policy, presence
from tenants.requests.decisions.triage import TriageGroup

# Heading and explanation, in the order of the page.
GROUPS = (
    (TriageGroup.ONE_CLICK, "Ready to approve", "within all limits, dry run accepted"),
    (TriageGroup.CONFLICT, "Conflict", "exceeds an allocation limit, or the cluster rejects it"),
    (TriageGroup.LOOK, "Needs review", "a value is unknown or outside the limits"),
)
NOTHING_SELECTED = "Select at least one request. Nothing was changed."
KEYS = (
    ("j", "next request"),
    ("k", "previous request"),
    ("x", "select or deselect the request"),
    ("o", "open the request (same as Enter)"),
    ("a", "focus the button Approve selected"),
    ("d", "focus the button Deny selected"),
)


@login_required
@require_GET
def inbox(request: HttpRequest) -> HttpResponse:
    by = actor(request)
    mine = approver_queries.rights_of(by)
    refuse_if(approver_policy.may_see_inbox(by, mine))
    pks = _ticks(request.GET)
    if request.GET.get("part") == "set":
        return render(request, "desk/inbox/_selection.html", {"set": _set(by, mine, pks)})
    return render(
        request, "desk/inbox/inbox.html", _context(request, by, mine, pks, reason=request.GET.get("reason", ""))
    )


@login_required
@require_POST
def decide(request: HttpRequest, *, approve: bool) -> HttpResponse:
    """Decides the selected requests as requested, each by itself. Refused requests remain selected."""
    by = actor(request)
    mine = approver_queries.rights_of(by)
    refuse_if(approver_policy.may_see_inbox(by, mine))
    pks, reason = _ticks(request.POST), request.POST.get("reason", "").strip()
    refusal = None if approve else policy.may_deny(reason=reason)
    error = NOTHING_SELECTED if not pks else refusal.message if refusal else ""
    if error:
        context = _context(request, by, mine, pks, reason=reason)
        return render(request, "desk/inbox/inbox.html", {**context, "error": error}, status=422)
    answers = bulk_decisions.decide_each(pks, approve=approve, reason=reason, by=by)
    done = "approved" if approve else "denied"
    refused = [one for one in answers if one.refusal]
    if not refused:
        messages.success(request, f"{_names(answers)} {done}. The requesters are notified.")
        return redirect(f"{reverse('inbox')}?{urlencode(_kept(request.POST))}")
    context = _context(request, by, mine, [one.pk for one in refused], reason=reason)
    return render(request, "desk/inbox/inbox.html", {**context, "answers": answers, "done": done})


def _context(
    request: HttpRequest, by: Actor, mine: ApproverRights, pks: Collection[int], *, reason: str
) -> dict[str, Any]:
    typed = request.POST if request.method == "POST" else request.GET
    kept = _kept(typed)
    chosen = InboxFilter(kept.get("team", ""), kept.get("class", ""), kept.get("group", ""))
    waiting = queries.pending_requests(mine, chosen)
    page = page_of(waiting, keys=("id",), cursor=typed.get("cursor"))
    read = queries.inbox_rows(page.items, by=by, mine=mine)
    rows = queries.in_group(read, chosen.group)
    all_waiting = request_queries.requests_to_decide(mine)
    summed = all_waiting.aggregate(total=Count("pk"), oldest_at=Min("filed_at"))
    open_by = presence.viewers_of_requests([row.request.pk for row in rows], by.person)
    found = [{**_shown(row, pks), "open_by": open_by.get(row.request.pk, ())} for row in rows]
    lines = QuotaLine.objects.filter(lines_decided_by(mine), state=QuotaLine.State.PENDING)
    return {
        "rows": found,
        "groups": [
            {"key": key, "title": title, "why": why, "rows": [row for row in found if row["group"] == key]}
            for key, title, why in GROUPS
            if chosen.group in ("", key)
        ],
        "is_filtered": any(asdict(chosen).values()),
        "chosen": chosen,
        "kept": {**kept, **({"cursor": typed["cursor"]} if typed.get("cursor") else {})},
        **summed,
        "next_cursor": page.next_cursor,
        # Not all pending requests: hundreds of them would fill most of the page.
        "teams_to_filter": list(dict.fromkeys(row.request.tenant.name for row in read)),
        "classes_to_filter": GpuClass.objects.filter(Exists(lines.filter(gpu_class=OuterRef("pk")))).order_by("slug"),
        "groups_to_filter": GROUPS,
        "set": _set(by, mine, pks),
        "reason": reason,
        "list_keys": KEYS,
        **team_request_queries.inbox_teams(by, mine),
    }


def _shown(row: InboxRow, pks: Collection[int]) -> dict[str, Any]:
    one = row.request
    return {
        **shown.request_row(one),
        "lines": [
            {
                "name": line.name,
                "kind": line.kind,
                "asked": shown.requested_units(line),
                "until": line.asked_until,
                "facts": row.pool.get(line.gpu_class_id, ""),
            }
            for line in one.pending
        ],
        "justification": one.justification,
        "decided": len(one.lines) - len(one.pending),
        "group": row.triage.group,
        "reasons": row.triage.reasons,
        "besides": row.triage.besides,
        "is_ticked": one.pk in pks,
    }


def _set(by: Actor, mine: ApproverRights, pks: Collection[int]) -> Any:
    """Returns the selection, limited to requests that this user decides; None if nothing is selected."""
    found = request_queries.requests_to_decide(mine).filter(pk__in=pks) if pks else ()
    return selection_of(found, by=by, mine=mine) if found else None


def _ticks(typed: QueryDict) -> list[int]:
    """Returns at most as many ids as a page has; text that is not a number is ignored."""
    texts = [text for text in typed.getlist("request") if text.isascii() and text.isdigit() and len(text) < 19]
    return list(dict.fromkeys(map(int, texts)))[:LIMIT_DEFAULT]


def _kept(typed: QueryDict) -> dict[str, str]:
    return {name: str(typed[name]) for name in ("team", "class", "group") if typed.get(name)}


def _names(answers: Sequence[DecisionResult]) -> str:
    return ", ".join(f"#{one.pk}" for one in answers)
