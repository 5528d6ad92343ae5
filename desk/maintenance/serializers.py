"""A maintenance as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import documented_length
from desk.maintenance.choices.serializers import NOT_CHOSEN
from operations.maintenance.choices.policy import OUTCOMES
from operations.maintenance.policy import NODES_MOST, REASON_MAX, RESOURCES_MOST, STUCK_MINUTES
from operations.maintenance.steps import Step
from operations.models import Maintenance, MaintenanceNotice


class MaintenanceNodeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    step = serializers.ChoiceField(Step.choices)
    step_since = serializers.DateTimeField()
    problem = serializers.CharField(allow_blank=True, help_text='What the step waits for; "" if only time has to pass.')
    is_stuck = serializers.BooleanField(help_text="The step takes longer than stuck_minutes, or cannot end.")
    is_going_back = serializers.BooleanField(help_text="Its labels are set as before the change.")


class MaintenanceNoticeSerializer(serializers.Serializer[Any]):
    team = serializers.CharField(source="run.workload.tenant.slug")
    workload = serializers.CharField(source="run.workload.name")
    run = serializers.IntegerField(source="run.number")
    stage = serializers.ChoiceField(MaintenanceNotice.Stage.choices)
    at = serializers.DateTimeField(source="told_at")


class MaintenanceSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    kind = serializers.ChoiceField(Maintenance.Kind.choices)
    reason = serializers.CharField()
    holds_from = serializers.DateTimeField(help_text="Nothing new starts on the nodes from then.")
    starts_at = serializers.DateTimeField(help_text="The nodes are drained from then.")
    ends_at = serializers.DateTimeField(help_text="When users expect the nodes back.")
    mig_config = serializers.CharField(allow_blank=True, help_text="Value of nvidia.com/mig.config.")
    plugin_config = serializers.CharField(allow_blank=True, help_text="Value of nvidia.com/device-plugin.config.")
    expected = serializers.DictField(
        child=serializers.IntegerField(), help_text="Devices of each node afterwards; empty: the same as before."
    )
    stuck_minutes = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(source="created_by.name")
    confirmed_at = serializers.DateTimeField(allow_null=True)
    cancel_requested_at = serializers.DateTimeField(allow_null=True)
    release_requested_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    outcome = serializers.ChoiceField(Maintenance.Outcome.choices, allow_blank=True, help_text='"" until it has ended.')
    state = serializers.ChoiceField(Step.choices, help_text="The step of the node that is least far.")
    nodes = MaintenanceNodeSerializer(many=True, source="nodes.all")


class AffectedRunSerializer(serializers.Serializer[Any]):
    team = serializers.CharField(source="team_slug")
    workload = serializers.CharField(source="name")
    person = serializers.CharField(help_text="Who requested the run.")
    nodes = serializers.ListField(child=serializers.CharField())
    message = serializers.CharField(source="what", help_text="What the maintenance does to it.")
    at_drain = serializers.ChoiceField(OUTCOMES, help_text=f"What happens to it at the drain. {NOT_CHOSEN}")
    is_chosen = serializers.BooleanField(help_text="Whether `at_drain` happens because somebody chose it.")


class DrainChoicesSerializer(serializers.Serializer[Any]):
    stop = serializers.IntegerField(source="stopping", help_text="Runs that end at the drain, as was chosen.")
    restart = serializers.IntegerField(source="restarting", help_text="Runs that start elsewhere, as was chosen.")
    undecided = serializers.IntegerField(help_text="Runs that start elsewhere by default.")
    ends_before = serializers.IntegerField(
        source="ending", help_text="Runs whose time limit ends before the drain, or that are being stopped."
    )
    stays = serializers.IntegerField(
        source="staying", help_text="Runs that the portal cannot move. The maintenance waits until they end."
    )


class AffectedClassSerializer(serializers.Serializer[Any]):
    gpu_class = serializers.CharField(source="slug")
    unit = serializers.CharField()
    on_nodes = serializers.IntegerField(source="here", help_text="Units that the nodes offer.")
    offered = serializers.IntegerField(help_text="Units that all nodes offer.")
    granted = serializers.IntegerField(help_text="Units granted to teams now.")
    queued = serializers.IntegerField(allow_null=True, help_text="Units of queued workloads; null: unknown.")
    message = serializers.CharField(
        source="sentence", allow_blank=True, help_text='What no longer holds during the maintenance; "": nothing.'
    )


class MaintenancePreviewSerializer(serializers.Serializer[Any]):
    runs = AffectedRunSerializer(many=True, help_text="On the nodes now.")
    choices = DrainChoicesSerializer(source="*", help_text="How many of the runs do what at the drain.")
    other_pods = serializers.ListField(
        child=serializers.CharField(),
        source="others",
        help_text="NAMESPACE/NAME of pods outside the portal that use devices of the nodes. The drain waits for them.",
    )
    classes = AffectedClassSerializer(many=True, help_text="With fewer units meanwhile.")
    is_known = serializers.BooleanField(help_text="Whether there are current updates from the cluster.")


class MaintenanceDetailSerializer(MaintenanceSerializer):
    told = MaintenanceNoticeSerializer(many=True, help_text="Runs whose people were told, and that were moved.")
    affected = MaintenancePreviewSerializer(allow_null=True, help_text="Of the nodes now; null: it is over.")


class NewMaintenanceSerializer(StrictSerializer):
    nodes = serializers.ListField(
        child=serializers.CharField(max_length=253), min_length=1, max_length=NODES_MOST, help_text="Names of nodes."
    )
    kind = serializers.ChoiceField(Maintenance.Kind.choices)
    reason = serializers.CharField(max_length=REASON_MAX, help_text="Everybody who runs on the nodes reads it.")
    holds_from = serializers.DateTimeField(required=False, help_text="Default: now.")
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    mig_config = serializers.CharField(
        max_length=63, required=False, allow_blank=True, help_text="Value of nvidia.com/mig.config."
    )
    plugin_config = serializers.CharField(
        max_length=63, required=False, allow_blank=True, help_text="Value of nvidia.com/device-plugin.config."
    )
    expected = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=10_000),
        required=False,
        validators=documented_length(RESOURCES_MOST),
        help_text="Devices of each node afterwards, by resource; needed for the kind repartition.",
    )
    stuck_minutes = serializers.IntegerField(
        min_value=STUCK_MINUTES[0], max_value=STUCK_MINUTES[1], required=False, help_text="Default: 30."
    )
