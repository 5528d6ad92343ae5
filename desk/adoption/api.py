"""/api/v1/adoptions: namespaces that existed before the portal. Operators propose, withdraw and undo, owners accept."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import operator
from accounts.models import Scope
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from cluster.reads.queries import current_cluster
from desk.adoption.serializers import AcceptAdoptionSerializer, AdoptionSerializer, NewAdoptionSerializer
from operations.adoption import actions, queries
from operations.models import Adoption


class Adoptions(VerbView, generics.GenericAPIView[Adoption]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.ADMIN}
    serializer_class = AdoptionSerializer
    queryset = Adoption.objects.none()  # for the schema

    @extend_schema(
        operation_id="adoptions_list",
        summary="Adoptions of existing namespaces, newest first: of the caller's teams, for staff all",
        responses=AdoptionSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = self.paginate_queryset(queries.adoptions_visible_to(self.by))
        return self.get_paginated_response(AdoptionSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="adoptions_propose",
        summary="For operators: create a team for an existing namespace; its owner is told, the cluster is not changed",
        request=NewAdoptionSerializer,
        responses={201: AdoptionSerializer, 404: None},
    )
    def post(self, request: Request) -> Response:
        by = operator(request)
        row = actions.propose_adoption(current_cluster(), **self.body(NewAdoptionSerializer), by=by)
        return self.created(AdoptionSerializer(row))


class AdoptionDetail(VerbView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="adoptions_get",
        summary="What an existing namespace contains, and what becomes of it",
        responses=AdoptionSerializer,
    )
    def get(self, request: Request, tenant: str) -> Response:
        return self.answer(AdoptionSerializer(queries.adoption_of_team(self.by, tenant)))


class AdoptionAccept(VerbView):
    required_scope = Scope.LAUNCH

    @extend_schema(
        operation_id="adoptions_accept",
        summary="For owners of the team: accept exactly these losses",
        request=AcceptAdoptionSerializer,
        responses=AdoptionSerializer,
    )
    def post(self, request: Request, tenant: str) -> Response:
        row = queries.adoption_of_team(self.by, tenant)
        typed = self.body(AcceptAdoptionSerializer)
        return self.answer(AdoptionSerializer(actions.accept_adoption(row.pk, typed["accepted"], by=self.by)))


class AdoptionUndo(VerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="adoptions_undo",
        summary="For operators: give the namespace back as it was",
        request=None,
        responses=AdoptionSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, tenant: str) -> Response:
        row = queries.adoption_of_team(self.by, tenant)
        return self.answer(AdoptionSerializer(actions.undo_adoption(row.pk, by=self.by)))


class AdoptionWithdraw(VerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="adoptions_withdraw",
        summary="For operators: withdraw a proposal; its team is closed, and another one may adopt the namespace",
        request=None,
        responses=AdoptionSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, tenant: str) -> Response:
        row = queries.adoption_of_team(self.by, tenant)
        return self.answer(AdoptionSerializer(actions.withdraw_adoption(row.pk, by=self.by)))
