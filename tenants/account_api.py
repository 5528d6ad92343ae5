"""/api/v1/people: accounts, for administrators. For everybody else it is not there."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django_filters.filters import ChoiceFilter
from django_filters.rest_framework.filterset import FilterSet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import actions, policy, queries, signing, welcome
from accounts.actor import Actor
from accounts.bounds import up_to
from accounts.edge import administrator
from accounts.etag import ETAG, IF_MATCH, if_match, tag
from accounts.known_fields import KnownFields, takes_no_fields
from accounts.known_query import text_filter
from accounts.models import Role, Scope, User
from portal.errors import get_or_refuse
from tenants import approvers
from tenants.queries.people import PersonRow, person_rows, teams_of


class AccountSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    email = serializers.EmailField()
    name = serializers.CharField()
    roles = serializers.ListField(child=serializers.ChoiceField(choices=Role.values))
    suspended = serializers.BooleanField(source="is_suspended")
    joined_at = serializers.DateTimeField()
    signed_in_at = serializers.DateTimeField(source="last_login", allow_null=True, help_text="The last time, if ever.")
    has_password = serializers.BooleanField(help_text="One that was set here.")
    has_second_factor = serializers.BooleanField()
    approver_for_all = serializers.BooleanField(source="decides_all", help_text="Every class, also those to come.")
    approver_for = serializers.ListField(
        source="slugs", child=serializers.CharField(), help_text="Slugs of classes. Counts while an approver."
    )


class TeamOfSerializer(serializers.Serializer[Any]):
    tenant = serializers.CharField(source="slug")
    role = serializers.CharField()
    is_only_owner = serializers.BooleanField(help_text="Nobody else with an active account owns it.")


class AccountDetailSerializer(AccountSerializer):
    teams = TeamOfSerializer(many=True)


class NewAccountSerializer(KnownFields):
    email = serializers.CharField(validators=up_to(policy.ADDRESS_MAX))
    name = serializers.CharField(validators=up_to(policy.NAME_MAX))


class PasswordCodeSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    email = serializers.EmailField()
    password_code = serializers.CharField(help_text=f"Told once; works once, for {welcome.CODE_DAYS} days.")


class BecauseSerializer(KnownFields):
    because = serializers.CharField(validators=up_to(policy.BECAUSE_MAX))


class AccountChangeSerializer(KnownFields):
    """What is left out stays."""

    roles = serializers.ListField(
        child=serializers.CharField(max_length=10), max_length=len(Role), required=False, help_text="All of them."
    )
    suspended = serializers.BooleanField(required=False)
    because = serializers.CharField(
        max_length=policy.BECAUSE_MAX, default="", allow_blank=True, help_text="Needed to suspend."
    )


class AccountFilter(FilterSet):
    q = text_filter(80, "Words of the name or the address.")
    role = ChoiceFilter(choices=Role.choices, help_text="Who has it.")
    suspended = ChoiceFilter(
        choices=[("true", "true"), ("false", "false")], help_text="Whether they may do nothing now."
    )

    class Meta:
        model = User
        fields: tuple[str, ...] = ()

    def filter_queryset(self, queryset: QuerySet[User]) -> QuerySet[User]:
        typed = self.form.cleaned_data
        suspended = typed["suspended"] == "true" if typed["suspended"] else None
        return queries.people(typed["q"] or "", typed["role"] or "", suspended=suspended)


def _detail(target: User) -> Response:
    row = person_rows([target])[0]
    body = {**AccountSerializer(row).data, "teams": TeamOfSerializer(teams_of(target), many=True).data}
    return Response(body, headers={"ETag": _tag(row)})


def _tag(row: PersonRow) -> str:
    return tag(row.roles, row.is_suspended, row.decides_all, row.slugs)


def _locked_tag(by: Actor, pk: int) -> str:
    _by, target, _others = actions.locked(by, pk)
    return _tag(person_rows([target])[0])


class People(generics.GenericAPIView[User]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.ADMIN}
    serializer_class = AccountSerializer
    filterset_class = AccountFilter
    keyset = ("email",)
    queryset = User.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[User]:
        return queries.people()

    @extend_schema(
        operation_id="people_list",
        summary="Everybody with an account, by address; administrators",
        responses={200: AccountSerializer(many=True), 404: None},
    )
    def get(self, request: Request) -> Response:
        administrator(request)
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response(AccountSerializer(person_rows(page), many=True).data)

    @extend_schema(
        operation_id="people_add",
        summary="A new account, and the code for its password; administrators",
        request=NewAccountSerializer,
        responses={201: PasswordCodeSerializer, 404: None},
    )
    def post(self, request: Request) -> Response:
        by = administrator(request)
        asked = NewAccountSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        return _code(*welcome.add_person(**asked.validated_data, by=by))


def _code(target: User, code: str) -> Response:
    made = PasswordCodeSerializer({"pk": target.pk, "email": target.email, "password_code": code}).data
    return Response(made, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class PasswordCode(APIView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="people_password_code",
        summary="A code with which somebody sets a new password; administrators",
        request=None,
        responses={201: PasswordCodeSerializer},
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        return _code(*welcome.make_password_code(pk, by=administrator(request)))


class SecondFactorDrop(APIView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="people_second_factor_drop",
        summary="Take a lost second factor off an account, which is signed out everywhere; administrators",
        parameters=[ETAG],
        request=BecauseSerializer,
        responses=AccountDetailSerializer,
    )
    def post(self, request: Request, pk: int) -> Response:
        by = administrator(request)
        get_or_refuse(User.objects.all(), pk=pk)
        asked = BecauseSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        return _detail(signing.drop_second_factor(pk, because=asked.validated_data["because"], by=by))


class PersonDetail(APIView):
    required_scope = Scope.READ
    required_scopes = {"PATCH": Scope.ADMIN}

    @extend_schema(
        operation_id="people_read",
        summary="One account; administrators",
        parameters=[ETAG],
        responses=AccountDetailSerializer,
    )
    def get(self, request: Request, pk: int) -> Response:
        administrator(request)
        return _detail(get_or_refuse(User.objects.all(), pk=pk))

    @extend_schema(
        operation_id="people_change",
        summary="Set roles, suspend, restore; administrators",
        parameters=[IF_MATCH, ETAG],
        request=AccountChangeSerializer,
        responses=AccountDetailSerializer,
    )
    @transaction.atomic
    def patch(self, request: Request, pk: int) -> Response:
        by = administrator(request)
        get_or_refuse(User.objects.all(), pk=pk)
        asked = AccountChangeSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        typed = asked.validated_data
        with if_match(request, lambda: _locked_tag(by, pk)):
            _by, target, _others = actions.locked(by, pk)
            if "roles" in typed:
                target = actions.set_roles(pk, typed["roles"], by=by)
            if typed.get("suspended", not target.is_active) is target.is_active:
                change = actions.suspend_user if typed["suspended"] else actions.restore_user
                target = change(pk, because=typed["because"], by=by)
        return _detail(target)


class ApproverForClass(APIView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="people_approver_for",
        summary="Let an approver decide about a class; administrators",
        parameters=[IF_MATCH, ETAG],
        request=None,
        responses=AccountDetailSerializer,
    )
    @takes_no_fields
    def put(self, request: Request, pk: int, slug: str) -> Response:
        by = administrator(request)
        with if_match(request, lambda: _locked_tag(by, pk)):
            target = approvers.let_decide(pk, slug, by=by)
        return _detail(target)

    @extend_schema(
        operation_id="people_not_approver_for",
        summary="Take a class back; administrators",
        parameters=[IF_MATCH],
        request=None,
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, pk: int, slug: str) -> Response:
        by = administrator(request)
        with if_match(request, lambda: _locked_tag(by, pk)):
            approvers.decide_no_more(pk, slug, by=by)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ApproverForAll(APIView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="people_approver_for_all",
        summary="Let an approver decide about every class, also those to come; administrators",
        parameters=[IF_MATCH, ETAG],
        request=None,
        responses=AccountDetailSerializer,
    )
    @takes_no_fields
    def put(self, request: Request, pk: int) -> Response:
        by = administrator(request)
        with if_match(request, lambda: _locked_tag(by, pk)):
            target = approvers.let_decide(pk, None, by=by)
        return _detail(target)

    @extend_schema(
        operation_id="people_not_approver_for_all",
        summary="Take that back; classes given by name stay; administrators",
        parameters=[IF_MATCH],
        request=None,
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, pk: int) -> Response:
        by = administrator(request)
        with if_match(request, lambda: _locked_tag(by, pk)):
            approvers.decide_no_more(pk, None, by=by)
        return Response(status=status.HTTP_204_NO_CONTENT)
