"""Bodies of calls about runs, and one run as JSON."""

from __future__ import annotations

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from workloads.core.constraints import GROUP_LIMIT
from workloads.launch.serializers import TERMS_HELP, TERMS_LIMIT
from workloads.rest.serializers import RunSerializer, StatusSerializer
from workloads.runs.concurrency.policy import RunRequest


class StartSerializer(StrictSerializer):
    group = serializers.CharField(
        max_length=GROUP_LIMIT, required=False, help_text="Concurrency group of the run, for example a branch."
    )
    cancel_running = serializers.BooleanField(
        default=False,
        help_text="Stop the team's other queued and running runs of the group. A run of this workload is stopped too; "
        "the new run starts when it has ended.",
    )
    accept_terms = serializers.IntegerField(min_value=0, max_value=TERMS_LIMIT, default=0, help_text=TERMS_HELP)

    def push(self) -> RunRequest:
        return RunRequest(**self.validated_data)


class OneRunSerializer(RunSerializer):
    requested_at = serializers.DateTimeField(
        allow_null=True, help_text="null: it starts when the previous run has ended."
    )
    workload = serializers.CharField()
    team = serializers.CharField()
    namespace = serializers.CharField()
    url = serializers.URLField(help_text="The page of its workload.")
    status = StatusSerializer(help_text="Of the last run, that of its workload; of an earlier run, its end.")
    followed_by = serializers.IntegerField(
        allow_null=True, help_text="It was interrupted: number of the run that was started automatically in its place."
    )
