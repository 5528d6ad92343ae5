"""/api/v1/search."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.request_actor import actor
from accounts.models import Scope
from desk.search import queries
from desk.search.serializers import SearchSerializer
from desk.search.types import TEXT_MAX
from portal.core.errors import refuse

Q = OpenApiParameter(
    "q",
    {"type": "string", "minLength": 1, "maxLength": TEXT_MAX},
    required=True,
    description="Words that a result contains.",
)


class Search(APIView):
    required_scope = Scope.READ
    query_of_get = (Q,)

    @extend_schema(
        operation_id="search",
        summary="Search teams, classes, workloads, people, pages and documentation that I may see",
        responses=SearchSerializer,
    )
    def get(self, request: Request) -> Response:
        by, text = actor(request), request.query_params.get("q", "").strip()
        if not text:
            raise refuse("invalid", "Send the text to search for as q.", field="q")
        return Response(SearchSerializer({"items": queries.search(by, text)}).data)
