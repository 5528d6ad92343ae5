"""A view whose methods are verbs: actor, request body, action, response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import status
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from accounts.rest.strict.serializers import StrictSerializer


class VerbView(APIView):
    """A method looks up the object of the URL, reads the body, calls one action and responds with its result. The order
    matters: callers who may not see the object get 404, whatever they sent.

        class TeamJoin(VerbView):
            required_scope = Scope.ADMIN

            @extend_schema(operation_id="…", request=JoinAnswerSerializer, responses=JoinSerializer)
            def post(self, request: Request, tenant: str, pk: int) -> Response:
                team_of_request(request, tenant)
                typed = self.body(JoinAnswerSerializer)
                return self.answer(JoinSerializer(answer_join(tenant, pk, by=self.by, **typed)))

    A list with a POST inherits from both: `class Joins(VerbView, generics.GenericAPIView[JoinRequest])`. A method that
    takes no body has `@takes_no_fields`.
    """

    @property
    def by(self) -> Actor:
        return actor(self.request)

    def body(self, serializer: type[StrictSerializer]) -> dict[str, Any]:
        """Returns the request body, validated by `serializer`. Raises ValidationError."""
        sent = serializer(data=self.request.data)
        sent.is_valid(raise_exception=True)
        values: dict[str, Any] = sent.validated_data
        return values

    def answer(self, made: BaseSerializer[Any], *, headers: Mapping[str, str] | None = None) -> Response:
        return Response(made.data, headers=headers)

    def created(self, made: BaseSerializer[Any], *, headers: Mapping[str, str] | None = None) -> Response:
        return Response(made.data, status=status.HTTP_201_CREATED, headers=headers)

    def no_content(self) -> Response:
        return Response(status=status.HTTP_204_NO_CONTENT)
