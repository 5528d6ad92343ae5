"""/api/v1/workloads: declare, launch, delete, and look, or wait, how it is doing. Its runs: workloads/runs_api.py."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django_filters.filters import ChoiceFilter
from django_filters.rest_framework.filterset import FilterSet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.actor import Actor
from accounts.edge import actor
from accounts.etag import ETAG, IF_MATCH, if_match, tag
from accounts.filters import is_filtered
from accounts.idempotency import IDEMPOTENCY_KEY, once
from accounts.known_fields import KnownFields, takes_no_fields
from accounts.known_query import choice, text, text_filter, whole
from accounts.models import Scope
from accounts.paging import KeysetPagination
from catalog.references import unknown_fit
from cluster.run_spec import JOB
from portal.errors import NOT_FOUND, Refused, refuse
from portal.written import writer
from tenants.member_models import in_teams_of
from tenants.models import Tenant
from workloads import actions, queries
from workloads.asked_api import LaunchSerializer, OptionsSerializer, WantedSerializer
from workloads.estimate_api import EstimateSerializer
from workloads.interruption_api import InterruptionSerializer, interruption_of
from workloads.models import Workload
from workloads.next_steps import Advice
from workloads.next_steps_api import AdviceSerializer, told
from workloads.phase import Status
from workloads.queries import WorkloadRow
from workloads.queries.helping import advices_for, verdict_of
from workloads.telling import page_of

WAIT_LIMIT_S = 300
UNTIL = ("admitted", "ready", "finished")
RETRY_AFTER_S = 5
# Set by the doors process, which waited already.
WAITED = "portal.waited"


class StatusSerializer(AdviceSerializer):
    phase = serializers.CharField(help_text="queued, preparing, starting, ready, running, stopping, stopped, …")
    reason = serializers.CharField(help_text="Stable code.")
    message = serializers.CharField(allow_blank=True, help_text="One sentence.")
    since = serializers.DateTimeField(allow_null=True)
    facts = serializers.DictField(help_text="Numbers behind the sentence, for example `position`.")
    actions = serializers.ListField(child=serializers.CharField(), help_text="Next best actions, best first.")


class StepSerializer(serializers.Serializer[Any]):
    title = serializers.CharField(help_text="Requested, Queued, Node assigned, Storage, Image, Repository, …")
    state = serializers.ChoiceField(choices=["done", "busy", "stuck", "next"])
    at = serializers.DateTimeField(allow_null=True, help_text="When it was done, or since when it is busy.")
    note = serializers.CharField(allow_blank=True)
    problem = serializers.CharField(allow_blank=True, help_text="Why it is stuck, in one sentence.")
    remedy = serializers.CharField(allow_blank=True, help_text="What helps.")
    raw = serializers.CharField(allow_blank=True, help_text="The text behind it.")
    raw_from = serializers.CharField(allow_blank=True, help_text="Who said it.")


class IdleSerializer(serializers.Serializer[Any]):
    """How a notebook on a class with an idle rule is used, as far as its server says."""

    asked_at = serializers.DateTimeField(allow_null=True)
    answered_at = serializers.DateTimeField(allow_null=True, help_text="Earlier than asked_at: it does not answer.")
    problem = serializers.CharField(allow_blank=True, help_text="Why there was no answer. Unknown is never stopped.")
    last_activity = serializers.DateTimeField(allow_null=True, help_text="Of kernels and terminals.")
    evidence = serializers.DictField(help_text="Numbers of computing and idle kernels, terminals and connections.")
    idle_since = serializers.DateTimeField(allow_null=True, help_text="null: in use, or not known.")
    stops_at = serializers.DateTimeField(allow_null=True, help_text="null: nobody was told of a stop.")
    kept_until = serializers.DateTimeField(allow_null=True)
    kept_reason = serializers.CharField(allow_blank=True)


class RunSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    group = serializers.CharField(allow_blank=True, help_text="As it was started with; empty: none.")
    requested_at = serializers.DateTimeField()
    admitted_at = serializers.DateTimeField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    ready_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    outcome = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    message = serializers.CharField(allow_blank=True)
    exit_code = serializers.IntegerField(allow_null=True)
    preemptions = serializers.IntegerField()
    run_minutes = serializers.IntegerField(
        source="spec.run_minutes", default=None, allow_null=True, help_text="From its start. null: no end."
    )
    extended_minutes = serializers.IntegerField(help_text="Added to that since.")
    ends_at = serializers.DateTimeField(allow_null=True, help_text="null: no end, or not started.")
    idle_stop_minutes = serializers.IntegerField(
        source="spec.idle_stop_minutes", default=None, allow_null=True, help_text="null: never stopped for being idle."
    )
    idle = IdleSerializer(source="watch", default=None, allow_null=True, help_text="null: not watched.")


class WorkloadSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    tenant = serializers.CharField()
    namespace = serializers.CharField()
    kind = serializers.CharField()
    gpu_class = serializers.CharField()
    units = serializers.IntegerField()
    image = serializers.CharField()
    command = serializers.ListField(child=serializers.CharField())
    volume = serializers.CharField(allow_blank=True)
    options = OptionsSerializer(help_text="What was said beyond the class's own.")
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    url = serializers.URLField(help_text="Its page.")
    status = StatusSerializer()
    run = RunSerializer(allow_null=True, help_text="The last one; null: never started.")
    needs_run = serializers.BooleanField(help_text="It is a job of which nothing runs or waits: start a run of it.")
    steps = StepSerializer(many=True, help_text="The way of the last run, in order.")
    image_note = serializers.CharField(allow_blank=True, help_text="Of an image that is not of the catalog.")
    estimate = EstimateSerializer(allow_null=True, help_text="When it may start. null: it does not wait for a start.")
    interruption = InterruptionSerializer(allow_null=True, help_text="null: nothing of it runs or waits.")


_written = writer(WorkloadSerializer())
_PLAIN = ("name", "kind", "units", "image", "command", "options", "created_at")


def body_of(row: WorkloadRow, helps: Mapping[str, Advice]) -> Any:
    workload = row.workload
    return _written(
        {
            **{name: getattr(workload, name) for name in _PLAIN},
            "tenant": workload.tenant.slug,
            "namespace": workload.namespace.name,
            "gpu_class": workload.gpu_class.slug,
            "volume": workload.volume.name if workload.volume else "",
            "created_by": workload.created_by.email,
            "url": page_of(workload),
            "status": status_of(row.status, helps.get(workload.name), workload.tenant.slug),
            "run": row.run,
            "needs_run": _needs_run(row),
            "steps": row.steps,
            "image_note": unknown_fit(workload.gpu_class.name, workload.kind) if workload.own_image else "",
            "estimate": row.estimate,
            "interruption": interruption_of(row),
        }
    )


def status_of(status_: Status, advice: Advice | None, tenant: str) -> dict[str, Any]:
    return {
        "phase": str(status_.phase),
        "reason": status_.reason,
        "message": status_.sentence,
        "since": status_.since,
        "facts": status_.facts,
        "actions": status_.actions,
        **told(advice, tenant),
        "verdict": verdict_of(status_, advice),
    }


def _needs_run(row: WorkloadRow) -> bool:
    workload, run = row.workload, row.run
    if workload.kind != JOB or workload.delete_requested_at is not None:
        return False
    # What is to follow it begins by itself.
    return run is None or (run.ended_at is not None and run.next_wanted_by_id is None)


TENANT = text("tenant", 40, "Slug of the team; needed when you are in several.")
WAIT = (
    whole("wait", 0, WAIT_LIMIT_S, "Answer when it is so far, after at most so many seconds."),
    choice("until", UNTIL, "What to wait for; default `ready`."),
)


def check_team(request: Request, name: str = "") -> None:
    """For a call that is answered again. Raises Refused (404) for whoever does not see the team any more."""
    by = actor(request)
    queries.team(by, tenant_of(request, by))


class WorkloadFilter(FilterSet):
    kind = ChoiceFilter(choices=Workload.Kind.choices, help_text="Notebooks or jobs alone.")
    gpu_class = text_filter(60, "Slug of a class.", field_name="gpu_class__slug")
    created_by = text_filter(254, "E-mail address of its maker.", field_name="created_by__email", lookup_expr="iexact")

    class Meta:
        model = Workload
        fields = ["kind", "gpu_class", "created_by"]


class Workloads(generics.GenericAPIView[Workload]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.LAUNCH}
    query = (TENANT,)
    serializer_class = WorkloadSerializer
    filterset_class = WorkloadFilter
    queryset = Workload.objects.none()  # for the schema

    def _page(self, by: Actor, tenant: str) -> list[Workload]:
        if is_filtered(self.request, self):
            found = self.filter_queryset(queries.of_tenant(by, tenant).only("pk"))
            return queries.read([one.pk for one in self.paginate_queryset(found) or ()])
        assert isinstance(self.paginator, KeysetPagination)
        return self.paginator.paginate_read(Workload, partial(queries.newest, by, tenant), self.request)

    @extend_schema(
        operation_id="workloads_list",
        summary="Workloads of a team, newest first",
        responses=WorkloadSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        by = actor(request)
        rows = queries.rows(self._page(by, tenant_of(request, by)))
        helps = advices_for(by, rows)
        return self.get_paginated_response([body_of(row, helps) for row in rows])

    @extend_schema(
        operation_id="workloads_launch",
        summary="Launch: declare a new workload and start its first run",
        parameters=[IDEMPOTENCY_KEY, ETAG],
        request=LaunchSerializer,
        responses={201: WorkloadSerializer},
    )
    @once(check_team)
    def post(self, request: Request) -> Response:
        by = actor(request)
        asked = LaunchSerializer(data=request.data)
        tenant = _checked(asked, request, by)
        workload = actions.launch(tenant, asked.wanted(), by=by)
        return answer(by, tenant, workload.name, status.HTTP_201_CREATED)


class WorkloadDetail(APIView):
    required_scope = Scope.READ
    required_scopes = {"PUT": Scope.LAUNCH, "DELETE": Scope.LAUNCH}
    query = (TENANT,)
    query_of_get = WAIT

    @extend_schema(
        operation_id="workloads_get",
        summary="One workload; with `wait`, when it is so far",
        parameters=[ETAG],
        responses=WorkloadSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        by = actor(request)
        waits = check_wait(request)
        return unless_waited(request, answer(by, tenant_of(request, by), name), waits=waits)

    @extend_schema(
        operation_id="workloads_declare",
        summary="Declare a workload without starting it; the same again changes nothing",
        parameters=[IF_MATCH, ETAG],
        request=WantedSerializer,
        responses={200: WorkloadSerializer, 201: WorkloadSerializer},
    )
    def put(self, request: Request, name: str) -> Response:
        by = actor(request)
        asked = WantedSerializer(data=request.data)
        tenant = _checked(asked, request, by)
        with if_match(request, lambda: _locked_tag(by, tenant, name)):
            _workload, is_new = actions.declare(tenant, asked.wanted(name), by=by)
        return answer(by, tenant, name, status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)

    @extend_schema(
        operation_id="workloads_delete",
        summary="Stop and delete a workload; its volume stays",
        description="The cluster is cleared after the answer. When nothing is left the address answers 404.",
        parameters=[IF_MATCH],
        responses={202: WorkloadSerializer},
    )
    @takes_no_fields
    def delete(self, request: Request, name: str) -> Response:
        by = actor(request)
        tenant = tenant_of(request, by)
        with if_match(request, lambda: _locked_tag(by, tenant, name)):
            workload = actions.delete(tenant, name, by=by)
        # By its key: a worker that was quick has taken it off the lists.
        (row,) = queries.rows(queries.with_names(Workload.objects.filter(pk=workload.pk)))
        return Response(body_of(row, {}), status=status.HTTP_202_ACCEPTED)


def tenant_of(request: Request, by: Actor) -> str:
    """`?tenant=`, or the caller's only team."""
    asked = request.query_params.get("tenant")
    if asked:
        return str(asked)
    own = list(Tenant.objects.filter(in_teams_of(by)).values_list("slug", flat=True)[:9])
    if not own:
        raise Refused(NOT_FOUND)
    if len(own) > 1:
        raise refuse(
            "which_tenant", f"You are in several teams; add ?tenant= with one of {', '.join(own)}.", field="tenant"
        )
    return own[0]


def _checked(asked: KnownFields, request: Request, by: Actor) -> str:
    """The team's slug, when the body is well. To a stranger it is not there, whatever is wrong with the body."""
    tenant = tenant_of(request, by)
    try:
        asked.is_valid(raise_exception=True)
    except (Refused, serializers.ValidationError):
        queries.team(by, tenant)
        raise
    return tenant


def check_wait(request: Request) -> bool:
    """Whether the caller wants to wait. Raises Refused for what cannot be waited for."""
    asked = request.query_params.get("wait")
    if request.query_params.get("until", "ready") not in UNTIL:
        raise refuse("bad_until", f"until is one of {', '.join(UNTIL)}.", field="until")
    if asked is None:
        return False
    if not (asked.isascii() and asked.isdigit() and len(asked) < 5 and int(asked) <= WAIT_LIMIT_S):
        raise refuse("bad_wait", f"wait is a whole number of seconds from 0 to {WAIT_LIMIT_S}.", field="wait")
    return True


def unless_waited(request: Request, response: Response, *, waits: bool) -> Response:
    """Says when to come back, where the call did not reach the process that can wait."""
    if waits and WAITED not in request.META:
        response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def answer(by: Actor, tenant: str, name: str, status_code: int = status.HTTP_200_OK) -> Response:
    found = queries.named(by, tenant, name)
    rows = queries.rows([found])
    return Response(body_of(rows[0], advices_for(by, rows)), status=status_code, headers={"ETag": tag_of(found)})


def tag_of(found: Workload) -> str:
    """Of what PUT sets. Whoever deletes it and declares the same again has changed it."""
    volume = found.volume.name if found.volume else ""
    said = (found.image, found.command, volume, found.options)
    return tag(found.pk, found.kind, found.gpu_class.slug, found.units, *said)


def _locked_tag(by: Actor, tenant: str, name: str) -> str | None:
    queries.team(by, tenant)  # a stranger is told nothing else
    rows = queries.of_tenant(by, tenant).select_related("gpu_class", "volume").select_for_update(of=("self",))
    found = rows.filter(name=name).first()
    return tag_of(found) if found else None
