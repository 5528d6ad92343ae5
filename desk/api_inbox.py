"""/api/v1/inbox: what waits for an approver, sorted as on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.actor import ALL_SCOPES
from accounts.edge import actor
from accounts.known_query import choice, text
from accounts.models import Scope
from desk.queries import inbox as queries
from desk.queries.inbox import Filter
from portal.errors import refuse, refuse_if
from tenants import deputy_policy
from tenants import queries as tenants
from tenants.api import RequestSerializer
from tenants.models import QuotaRequest
from tenants.triage import Group

GROUPS = [str(group) for group in Group]


class InboxSerializer(RequestSerializer):
    group = serializers.ChoiceField(
        choices=GROUPS,
        help_text="one_click: all facts within bounds, plan clean. conflict: does not fit as asked. look: the rest.",
    )
    reasons: Any = serializers.ListField(child=serializers.CharField(), help_text="Sentences: why it is in this group.")


class Inbox(generics.GenericAPIView[QuotaRequest]):
    required_scope = Scope.READ
    query = (
        text("tenant", 40, "Slug of a team."),
        text("gpu_class", 60, "Slug of a class."),
        choice("group", GROUPS, "One of the page's groups."),
    )
    serializer_class = InboxSerializer
    filter_backends = ()
    keyset = ("id",)
    queryset = QuotaRequest.objects.none()  # for the schema

    @extend_schema(
        operation_id="inbox_list",
        summary="What waits for me, who approves: oldest first, with group and reasons",
        description="`group` is found page by page: with it a page may hold fewer requests, and `next` goes on.",
        responses=InboxSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        by = actor(request)
        mine = tenants.rights(by)
        refuse_if(deputy_policy.may_see_inbox(by, mine))
        asked = request.query_params
        chosen = Filter(asked.get("tenant", ""), asked.get("gpu_class", ""), asked.get("group", ""))
        if chosen.group and chosen.group not in GROUPS:
            text = f"A group is {', '.join(GROUPS)}; '{chosen.group[:40]}' is none of them."
            raise refuse("unknown_group", text, field="group")
        page = self.paginate_queryset(queries.waiting(mine, chosen)) or []
        # The group is the person's, whatever this token may do.
        rows = queries.inbox_rows(page, by=replace(by, scopes=ALL_SCOPES), mine=mine)
        return self.get_paginated_response([_shown(row) for row in queries.in_group(rows, chosen.group)])


def _shown(row: queries.InboxRow) -> dict[str, Any]:
    reasons = [*row.triage.reasons, *row.triage.besides]
    return {**RequestSerializer(row.request).data, "group": str(row.triage.group), "reasons": reasons}
