"""/api/v1/teams/<slug>/budget: shown to the team, set by operators; confirmed by owners."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from portal.core.errors import get_or_refuse
from tenants.models import Tenant
from workloads.budgets import actions
from workloads.budgets.queries import budget_of
from workloads.budgets.serializers import NO_BUDGET, BudgetSerializer, WantedBudgetSerializer


class Budget(VerbView):
    required_scope = Scope.READ
    required_scopes = {"PUT": Scope.ADMIN, "DELETE": Scope.ADMIN}

    @extend_schema(
        operation_id="budget_get", summary="The team's budget, its cost and forecast", responses=BudgetSerializer
    )
    def get(self, request: Request, tenant: str) -> Response:
        return self.answer(_shown(_team(request, tenant)))

    @extend_schema(
        operation_id="budget_set",
        summary="Set the team's budget for every month; operators",
        request=WantedBudgetSerializer,
        responses=BudgetSerializer,
    )
    def put(self, request: Request, tenant: str) -> Response:
        team = _team(request, tenant)
        actions.set_budget(tenant, **self.body(WantedBudgetSerializer), by=self.by)
        return self.answer(_shown(team))

    @extend_schema(
        operation_id="budget_remove", summary="Remove the team's budget; operators", request=None, responses={204: None}
    )
    @takes_no_fields
    def delete(self, request: Request, tenant: str) -> Response:
        actions.set_budget(_team(request, tenant).slug, amount=None, by=self.by)
        return self.no_content()


class BudgetConfirm(VerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="budget_confirm",
        summary="Allow launches beyond the budget until the end of the month; owners",
        request=None,
        responses=BudgetSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, tenant: str) -> Response:
        team = _team(request, tenant)
        actions.confirm_launches(tenant, by=self.by)
        return self.answer(_shown(team))


def _team(request: Request, slug: str) -> Tenant:
    return get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=slug)


def _shown(team: Tenant) -> BudgetSerializer:
    return BudgetSerializer(budget_of(team) or NO_BUDGET)
