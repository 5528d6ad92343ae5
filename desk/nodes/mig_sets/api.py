"""/api/v1/mig-sets: MIG layouts of several nodes, planned together, for operators; 404 for all other users."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import operator
from accounts.models import Scope
from accounts.rest.verb_view import VerbView
from cluster.reads.queries import current_cluster
from desk.nodes.mig_sets import queries
from desk.nodes.mig_sets.policy import nodes_refusal
from desk.nodes.mig_sets.serializers import MigSetPlanRequestSerializer, MigSetPlanSerializer, MigSetSerializer
from desk.nodes.mig_sets.types import MigSet, ProfileLine, Proposal
from portal.core.errors import refuse, refuse_if
from portal.ui.text import first_names


class MigSets(VerbView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="mig_sets_get",
        summary="For operators: nodes with the same GPUs and MIG strategy, and their layouts now",
        responses={200: MigSetSerializer(many=True), 404: None},
    )
    def get(self, request: Request) -> Response:
        operator(request)
        return self.answer(MigSetSerializer(queries.mig_sets(current_cluster()), many=True))


class MigSetPlans(VerbView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="mig_sets_plan",
        summary="For operators: MIG layouts for the nodes of a set, what they serve and break; nothing is changed",
        request=MigSetPlanRequestSerializer,
        responses={200: MigSetPlanSerializer, 404: None},
    )
    def post(self, request: Request) -> Response:
        operator(request)
        cluster = current_cluster()
        typed = self.body(MigSetPlanRequestSerializer)
        one = next((known for known in queries.mig_sets(cluster) if known.key == typed["set"]), None)
        if one is None:
            raise refuse("invalid", "There is no such set of nodes.", field="set")
        names = _names(one, typed.get("nodes"))
        refuse_if(nodes_refusal(names))
        lines = queries.demand_of(cluster, one, names)
        wanted = {line.profile: line.proposed for line in lines}
        if unknown := sorted(typed.get("wanted", {}).keys() - wanted.keys()):
            text = f"These GPUs have no profile {first_names(unknown)}. They have {', '.join(wanted)}."
            raise refuse("invalid", text, field="wanted")
        found = queries.proposal(
            cluster,
            one,
            names,
            lines,
            wanted | typed.get("wanted", {}),
            keeps_grants=typed.get("keeps_grants", True),
        )
        return self.answer(MigSetPlanSerializer(_plan(one, lines, found)))


def _names(one: MigSet, asked: list[str] | None) -> list[str]:
    if missing := sorted(set(asked or ()) - set(one.names)):
        raise refuse("invalid", f"Not planned in this set: {first_names(missing)}.", field="nodes")
    return [name for name in one.names if asked is None or name in asked]


def _plan(one: MigSet, lines: tuple[ProfileLine, ...], found: Proposal) -> dict[str, Any]:
    plan = found.plan
    return {
        "set": one.key,
        "demand": lines,
        "nodes": [
            {
                "name": node.node.name,
                "is_changed": node.is_changed,
                "layout": [{"gpus": number, "instances": instances} for instances, number in node.groups],
                "offers": node.offers,
            }
            for node in plan.nodes
        ],
        "served": plan.served,
        "unserved": plan.unserved,
        "spare": plan.spare,
        "stranded_memory_slices": plan.stranded,
        "broken": found.broken,
        "runs": found.runs,
        "other_pods": found.others,
        "steps": found.steps,
        "is_best": plan.is_best,
        "at_most": plan.at_most,
        "is_fewest": plan.is_fewest,
        "changes_least": plan.changes_least,
        "is_known": found.is_known,
    }
