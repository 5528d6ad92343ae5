"""The fields of a workload, its status, steps and runs in the API."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from workloads.advice.serializers import AdviceSerializer
from workloads.interruption.serializers import InterruptionSerializer
from workloads.launch.serializers import VISIBILITIES, OptionsSerializer
from workloads.status.estimates.serializers import EstimateSerializer


class StatusSerializer(AdviceSerializer):
    phase = serializers.CharField(help_text="queued, preparing, starting, ready, running, stopping, stopped, …")
    reason = serializers.CharField(help_text="Stable code.")
    message = serializers.CharField(allow_blank=True, help_text="One sentence.")
    since = serializers.DateTimeField(allow_null=True)
    facts = serializers.DictField(help_text="Numbers behind the sentence, for example `position`.")
    actions = serializers.ListField(child=serializers.CharField(), help_text="Suggested actions, best first.")
    who_acts = serializers.CharField(
        allow_blank=True, help_text="you, operators, nobody (it continues automatically); empty: nobody has to act."
    )


class StepSerializer(serializers.Serializer[Any]):
    title = serializers.CharField(help_text="Requested, Queued, Node assigned, Storage, Image, Repository, …")
    state = serializers.ChoiceField(choices=["done", "busy", "stuck", "next"])
    at = serializers.DateTimeField(allow_null=True, help_text="When it was done, or since when it is busy.")
    note = serializers.CharField(allow_blank=True)
    problem = serializers.CharField(allow_blank=True, help_text="Why it is stuck, in one sentence.")
    remedy = serializers.CharField(allow_blank=True, help_text="Suggested action.")
    raw = serializers.CharField(allow_blank=True, help_text="Original text from the cluster.")
    raw_from = serializers.CharField(allow_blank=True, help_text="Component that reported it.")


class IdleSerializer(serializers.Serializer[Any]):
    """Use of a notebook on a class with an idle rule, as its server reports it."""

    asked_at = serializers.DateTimeField(allow_null=True)
    answered_at = serializers.DateTimeField(allow_null=True, help_text="Earlier than asked_at: it does not respond.")
    problem = serializers.CharField(
        allow_blank=True, help_text="Why the server did not respond. It is not stopped then."
    )
    last_activity = serializers.DateTimeField(allow_null=True, help_text="Of kernels and terminals.")
    evidence = serializers.DictField(help_text="Number of computing and idle kernels, terminals and connections.")
    idle_since = serializers.DateTimeField(allow_null=True, help_text="null: in use, or unknown.")
    stops_at = serializers.DateTimeField(allow_null=True, help_text="null: no stop is scheduled.")
    kept_until = serializers.DateTimeField(allow_null=True)
    kept_reason = serializers.CharField(allow_blank=True)


class RunSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    group = serializers.CharField(allow_blank=True, help_text="Concurrency group; empty: none.")
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
        source="spec.run_minutes", default=None, allow_null=True, help_text="Time limit from its start. null: none."
    )
    extended_minutes = serializers.IntegerField(help_text="Added by extensions.")
    ends_at = serializers.DateTimeField(allow_null=True, help_text="null: no time limit, or not started.")
    idle_stop_minutes = serializers.IntegerField(
        source="spec.idle_stop_minutes", default=None, allow_null=True, help_text="null: not stopped when idle."
    )
    idle = IdleSerializer(source="watch", default=None, allow_null=True, help_text="null: not monitored.")


class WorkloadSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    team = serializers.CharField()
    namespace = serializers.CharField()
    kind = serializers.CharField()
    gpu_class = serializers.CharField()
    units = serializers.IntegerField()
    image = serializers.CharField()
    command = serializers.ListField(child=serializers.CharField())
    volume = serializers.CharField(allow_blank=True)
    visibility = serializers.ChoiceField(
        choices=VISIBILITIES,
        allow_null=True,
        help_text="Who can open it. private: `created_by` alone; team: every member who may launch; null: it is a job.",
    )
    options = OptionsSerializer(help_text="Options that differ from the class's defaults.")
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    url = serializers.URLField(help_text="Its page.")
    status = StatusSerializer()
    run = RunSerializer(allow_null=True, help_text="The last run; null: never started.")
    needs_run = serializers.BooleanField(help_text="It is a job without a queued or running run: start one.")
    steps = StepSerializer(many=True, help_text="Steps of the last run, in order.")
    image_note = serializers.CharField(allow_blank=True, help_text="Note on an image that is not in the catalog.")
    estimate = EstimateSerializer(allow_null=True, help_text="Estimated start. null: it is not waiting to start.")
    interruption = InterruptionSerializer(allow_null=True, help_text="null: no queued or running run.")
