"""/api/v1/operators/teams: every team, for staff."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from accounts.core.request_actor import staff
from accounts.models import Scope
from accounts.rest.paging import PAGING, next_link, parse_limit
from accounts.rest.strict.query import choice_parameter, integer_parameter, text_parameter
from cluster.reads import queries as read_queries
from desk.teams import queries
from desk.teams.serializers import TeamOverviewListSerializer
from desk.teams.sql import SORTS
from desk.teams.types import IDLE_DAYS_MAX, TEAM_STATES, GpuSum, TeamFilter, TeamListRow
from portal.core.errors import refuse
from portal.ui.text import decimal_text
from tenants.class_access import queries as class_access_queries


class TeamOverviews(APIView):
    required_scope = Scope.READ
    query = (
        text_parameter("q", 80, "Words of the name or the slug."),
        choice_parameter("state", TEAM_STATES, "State of the team."),
        text_parameter("gpu_class", 60, "Slug of a class of which the team has units in force."),
        integer_parameter("idle_days", 1, IDLE_DAYS_MAX, "No activity for at least so many days."),
        choice_parameter("sort", list(SORTS), "Order. Default `team`."),
        *PAGING,
    )

    @extend_schema(
        operation_id="operators_teams_get",
        summary="For operators and auditors: all teams with state, quota, use and last activity",
        description="`sort`: `team` by slug, `created` newest first, `activity` longest idle first, `expiry` next "
        "expiry first.",
        responses={200: TeamOverviewListSerializer, 404: None},
    )
    def get(self, request: Request) -> Response:
        by, cluster = staff(request), read_queries.current_cluster()
        asked = request.query_params
        slug = asked.get("gpu_class", "")
        known = class_access_queries.known_classes(by, cluster)
        chosen = TeamFilter(
            text=asked.get("q", ""),
            state=_one_of(TEAM_STATES, "state", asked.get("state", "")),
            gpu_class=class_access_queries.class_to_filter(known, slug).pk if slug else None,
            idle_days=_days(asked.get("idle_days")),
            sort=_one_of(SORTS, "sort", asked.get("sort", "")) or "team",
        )
        limit = parse_limit(asked.get("limit"))
        page = queries.read_teams(cluster, chosen, cursor=asked.get("cursor"), limit=limit)
        address = request.build_absolute_uri()
        following = replace_query_param(address, "cursor", page.next_cursor) if page.next_cursor else None
        shown = {
            "items": [_item(row) for row in page.rows],
            "next": following,
            "as_of": page.as_of.at,
            "is_current": page.as_of.is_current,
            "problem": page.as_of.problem,
        }
        return Response(TeamOverviewListSerializer(shown).data, headers=next_link(following))


def _one_of(choices: Any, field: str, text: str) -> str:
    if text and text not in choices:
        told = f"There is no {field} '{text[:40]}'. Choose one of {', '.join(choices)}."
        raise refuse("unknown_state" if field == "state" else "invalid", told, field=field)
    return text


def _days(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= IDLE_DAYS_MAX):
        told = f"idle_days must be a whole number from 1 to {IDLE_DAYS_MAX}."
        raise refuse("invalid", told, field="idle_days")
    return int(text)


def _item(row: TeamListRow) -> dict[str, Any]:
    names = (
        "slug",
        "name",
        "state",
        "problem",
        "out_of_sync",
        "owners",
        "created_at",
        "is_busy",
        "last_activity_at",
        "next_expiry_at",
        "queued_runs",
        "uses",
    )
    gpus = {"exclusive": _gpus(row.exclusive), "shared": _gpus(row.shared)}
    return {**{name: getattr(row, name) for name in names}, "gpus": gpus}


def _gpus(found: GpuSum) -> dict[str, str | None]:
    return {"quota": decimal_text(found.quota), "used": None if found.used is None else decimal_text(found.used)}
