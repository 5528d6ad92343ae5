"""/api/v1/people: accounts, for administrators. Everybody else gets 404."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet
from django_filters.filters import ChoiceFilter
from django_filters.rest_framework.filterset import FilterSet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.account_setup import actions as account_setup_actions
from accounts.core.actor import Actor
from accounts.core.request_actor import administrator
from accounts.credentials import actions as credential_actions
from accounts.models import Role, Scope, User
from accounts.people import actions, queries
from accounts.rest.etag import ETAG, IF_MATCH, etag_of, if_match
from accounts.rest.strict.query import text_filter
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from portal.core.errors import get_or_refuse
from tenants.approvers import actions as approver_actions
from tenants.approvers.delegation.queries import roles_lent_to
from tenants.people.queries import PersonRow, person_rows, teams_of
from tenants.people.serializers import (
    AccountChangeSerializer,
    AccountDetailSerializer,
    AccountSerializer,
    BecauseSerializer,
    NewAccountSerializer,
    PasswordCodeSerializer,
    TeamOfSerializer,
)


class AccountFilter(FilterSet):
    q = text_filter(80, "Part of the name or the address.")
    role = ChoiceFilter(choices=Role.choices, help_text="Accounts with this role.")
    suspended = ChoiceFilter(
        choices=[("true", "true"), ("false", "false")], help_text="Whether the account is suspended."
    )

    class Meta:
        model = User
        fields: tuple[str, ...] = ()

    def filter_queryset(self, queryset: QuerySet[User]) -> QuerySet[User]:
        typed = self.form.cleaned_data
        suspended = typed["suspended"] == "true" if typed["suspended"] else None
        return queries.search_people(typed["q"] or "", typed["role"] or "", suspended=suspended)


def _detail(target: User) -> Response:
    row = person_rows([target])[0]
    body = {**AccountSerializer(row).data, "teams": TeamOfSerializer(teams_of(target), many=True).data}
    return Response(body, headers={"ETag": _tag(row)})


def _tag(row: PersonRow) -> str:
    return etag_of(row.roles, row.is_suspended, row.decides_all, row.slugs)


def _locked_tag(by: Actor, pk: int) -> str:
    _by, target, _others = actions.lock_actor_and_target(by, pk)
    return _tag(person_rows([target])[0])


class People(VerbView, generics.GenericAPIView[User]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.ADMIN}
    serializer_class = AccountSerializer
    filterset_class = AccountFilter
    keyset = ("email",)
    queryset = User.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[User]:
        return queries.search_people()

    @extend_schema(
        operation_id="people_list",
        summary="List accounts, by address (administrators)",
        responses={200: AccountSerializer(many=True), 404: None},
    )
    def get(self, request: Request) -> Response:
        administrator(request)
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response(AccountSerializer(person_rows(page), many=True).data)

    @extend_schema(
        operation_id="people_add",
        summary="Create an account and its password code (administrators)",
        request=NewAccountSerializer,
        responses={201: PasswordCodeSerializer, 404: None},
    )
    def post(self, request: Request) -> Response:
        by = administrator(request)
        typed = self.body(NewAccountSerializer)
        return _code(*account_setup_actions.add_person(**typed, by=by))


def _code(target: User, code: str) -> Response:
    made = PasswordCodeSerializer({"pk": target.pk, "email": target.email, "password_code": code}).data
    return Response(made, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class PasswordCode(VerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="people_password_code",
        summary="Create a password code for an account (administrators)",
        request=None,
        responses={201: PasswordCodeSerializer},
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        return _code(*account_setup_actions.make_password_code(pk, lent_to=roles_lent_to, by=administrator(request)))


class SecondFactorDrop(VerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="people_second_factor_drop",
        summary="Remove a lost second factor; the account is signed out everywhere (administrators)",
        parameters=[ETAG],
        request=BecauseSerializer,
        responses=AccountDetailSerializer,
    )
    def post(self, request: Request, pk: int) -> Response:
        by = administrator(request)
        get_or_refuse(User.objects.all(), pk=pk)
        typed = self.body(BecauseSerializer)
        return _detail(
            credential_actions.drop_second_factor(pk, because=typed["because"], lent_to=roles_lent_to, by=by)
        )


class PersonDetail(VerbView):
    required_scope = Scope.READ
    required_scopes = {"PATCH": Scope.ADMIN}

    @extend_schema(
        operation_id="people_read",
        summary="Get an account (administrators)",
        parameters=[ETAG],
        responses=AccountDetailSerializer,
    )
    def get(self, request: Request, pk: int) -> Response:
        administrator(request)
        return _detail(get_or_refuse(User.objects.all(), pk=pk))

    @extend_schema(
        operation_id="people_change",
        summary="Set roles, suspend or restore an account (administrators)",
        parameters=[IF_MATCH, ETAG],
        request=AccountChangeSerializer,
        responses=AccountDetailSerializer,
    )
    @transaction.atomic
    def patch(self, request: Request, pk: int) -> Response:
        by = administrator(request)
        get_or_refuse(User.objects.all(), pk=pk)
        typed = self.body(AccountChangeSerializer)
        with if_match(request, lambda: _locked_tag(by, pk)):
            _by, target, _others = actions.lock_actor_and_target(by, pk)
            if "roles" in typed:
                target = actions.set_roles(pk, typed["roles"], by=by)
            if typed.get("suspended", not target.is_active) is target.is_active:
                change = actions.suspend_user if typed["suspended"] else actions.restore_user
                target = change(pk, because=typed["because"], by=by)
        return _detail(target)


class ApproverForClass(VerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="people_approver_for",
        summary="Allow an approver to decide requests for a class (administrators)",
        parameters=[IF_MATCH, ETAG],
        request=None,
        responses=AccountDetailSerializer,
    )
    @takes_no_fields
    def put(self, request: Request, pk: int, slug: str) -> Response:
        by = administrator(request)
        with if_match(request, lambda: _locked_tag(by, pk)):
            target = approver_actions.grant_class(pk, slug, by=by)
        return _detail(target)

    @extend_schema(
        operation_id="people_not_approver_for",
        summary="Remove a class from an approver (administrators)",
        parameters=[IF_MATCH],
        request=None,
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, pk: int, slug: str) -> Response:
        by = administrator(request)
        with if_match(request, lambda: _locked_tag(by, pk)):
            approver_actions.revoke_class(pk, slug, by=by)
        return self.no_content()


class ApproverForAll(VerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="people_approver_for_all",
        summary="Allow an approver to decide requests for all current and future classes (administrators)",
        parameters=[IF_MATCH, ETAG],
        request=None,
        responses=AccountDetailSerializer,
    )
    @takes_no_fields
    def put(self, request: Request, pk: int) -> Response:
        by = administrator(request)
        with if_match(request, lambda: _locked_tag(by, pk)):
            target = approver_actions.grant_class(pk, None, by=by)
        return _detail(target)

    @extend_schema(
        operation_id="people_not_approver_for_all",
        summary="Remove that right; classes that were added by name are not changed (administrators)",
        parameters=[IF_MATCH],
        request=None,
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, pk: int) -> Response:
        by = administrator(request)
        with if_match(request, lambda: _locked_tag(by, pk)):
            approver_actions.revoke_class(pk, None, by=by)
        return self.no_content()
