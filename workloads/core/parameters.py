"""The query parameter `team` of this app's API, and the team to which a call applies."""

from __future__ import annotations

from functools import cached_property

from rest_framework.request import Request

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from accounts.rest.strict.query import text_parameter
from accounts.rest.verb_view import VerbView
from portal.core.errors import NOT_FOUND, Refused, refuse
from tenants.members.models import in_teams_of
from tenants.models import Tenant
from workloads.core import queries as core_queries

TEAM_PARAMETER = text_parameter("team", 40, "Slug of the team. Required if you are in several teams.")


def require_team(request: Request, name: str = "") -> None:
    """For a call whose response is repeated. Raises Refused (404) for a caller who may no longer see the team."""
    by = actor(request)
    core_queries.team(by, requested_tenant(request, by))


def requested_tenant(request: Request, by: Actor) -> str:
    """Returns the value of `?team=`, or the caller's only team."""
    asked = request.query_params.get("team")
    if asked:
        return str(asked)
    own = list(Tenant.objects.filter(in_teams_of(by)).values_list("slug", flat=True)[:9])
    if not own:
        raise Refused(NOT_FOUND)
    if len(own) > 1:
        raise refuse("which_team", f"You are in several teams. Add ?team= with one of {', '.join(own)}.", field="team")
    return own[0]


class TeamVerbView(VerbView):
    """A view whose calls are about one team."""

    query = (TEAM_PARAMETER,)

    @cached_property
    def tenant(self) -> str:
        """Slug of the team of `?team=`, or of the caller's only one, which takes a query. Whether the caller may see
        it is for the action to say. Raises Refused: not_found (404), which_team (422).
        """
        return requested_tenant(self.request, self.by)
