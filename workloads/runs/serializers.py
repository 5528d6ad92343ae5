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
        max_length=GROUP_LIMIT, required=False, help_text="What the run is for, a branch for example."
    )
    cancel_running = serializers.BooleanField(
        default=False,
        help_text="Stop what else runs or waits of the group in the team; a run of this very workload is followed by "
        "the new one.",
    )
    accept_terms = serializers.IntegerField(min_value=0, max_value=TERMS_LIMIT, default=0, help_text=TERMS_HELP)

    def push(self) -> RunRequest:
        return RunRequest(**self.validated_data)


class OneRunSerializer(RunSerializer):
    requested_at = serializers.DateTimeField(
        allow_null=True, help_text="null: it begins when the run before it has ended."
    )
    workload = serializers.CharField()
    tenant = serializers.CharField()
    namespace = serializers.CharField()
    url = serializers.URLField(help_text="The page of its workload.")
    status = StatusSerializer(help_text="Of the last run as its workload's; of an earlier one as it ended.")
    followed_by = serializers.IntegerField(
        allow_null=True, help_text="It was interrupted: number of the run that was begun in its place by itself."
    )
