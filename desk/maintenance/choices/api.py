"""/api/v1/workloads/{name}/maintenance: the maintenances of a run's nodes, and what happens to it at the drain."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from desk.maintenance.choices.queries import drain_choices
from desk.maintenance.choices.serializers import AtDrainSerializer, RunMaintenancesSerializer
from operations.maintenance.choices.actions import choose_at_drain
from operations.maintenance.choices.queries import is_known
from workloads.core import queries as core_queries
from workloads.core.parameters import TeamVerbView


class RunMaintenances(TeamVerbView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="workloads_maintenance_get",
        summary="Planned and running maintenance of the nodes of a run, and what happens to it at the drain",
        responses=RunMaintenancesSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        return self.answer(_shown(self, name))


class RunMaintenanceChoice(TeamVerbView):
    required_scope = Scope.LAUNCH

    @extend_schema(
        operation_id="workloads_maintenance_choose",
        summary="Choose what happens to a run when its node is drained: it starts elsewhere, or it stops",
        request=AtDrainSerializer,
        responses=RunMaintenancesSerializer,
    )
    def put(self, request: Request, name: str, pk: int) -> Response:
        core_queries.visible_workload(self.by, self.tenant, name)
        choose_at_drain(self.tenant, name, pk, self.body(AtDrainSerializer)["at_drain"], by=self.by)
        return self.answer(_shown(self, name))


def _shown(view: TeamVerbView, name: str) -> RunMaintenancesSerializer:
    _namespace, team = core_queries.team(view.by, view.tenant)
    workload = core_queries.visible_workload(view.by, view.tenant, name)
    found = drain_choices(view.by, team, workload, core_queries.last_run(workload))
    return RunMaintenancesSerializer({"maintenances": found, "is_known": is_known(workload)})
