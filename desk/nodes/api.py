"""/api/v1/operators/nodes: the nodes with their devices, for operators; 404 for all other users."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from accounts.core.request_actor import operator
from accounts.models import Scope
from accounts.rest.paging import PAGING, next_link, parse_limit
from accounts.rest.strict.query import choice_parameter, text_parameter
from cluster.reads import queries as read_queries
from desk.nodes import queries
from desk.nodes.serializers import NodeListSerializer
from portal.core.errors import refuse
from usage.faults.shown import reading_sentence

STATES = tuple(filter(None, queries.FILTERS))


class Nodes(APIView):
    required_scope = Scope.READ
    query = (
        text_parameter("q", 100, "A part of its name or of a label."),
        choice_parameter("state", STATES, "Only nodes in this state; `changing`: its MIG layout."),
        *PAGING,
    )

    @extend_schema(
        operation_id="operators_nodes_get",
        summary="For operators: nodes by name, with devices, use, cordons and open faults",
        responses={200: NodeListSerializer, 404: None},
    )
    def get(self, request: Request) -> Response:
        operator(request)
        asked = request.query_params
        state = asked.get("state", "")
        if state and state not in STATES:
            raise refuse("invalid", f"state must be one of {', '.join(STATES)}.", field="state")
        found = queries.node_list(
            read_queries.current_cluster(),
            q=asked.get("q", ""),
            state=state,
            cursor=asked.get("cursor"),
            limit=parse_limit(asked.get("limit")),
        )
        address = request.build_absolute_uri()
        following = replace_query_param(address, "cursor", found.next_cursor) if found.next_cursor else None
        shown = {
            "items": found.lines,
            "next": following,
            "faults": reading_sentence(found.reading),
            "as_of": found.as_of.at,
            "is_current": found.as_of.is_current,
            "problem": found.as_of.problem,
        }
        return Response(NodeListSerializer(shown).data, headers=next_link(following))
