"""Bodies of calls that launch or declare a workload."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import DocumentedChoiceField, documented_length, documented_range
from catalog.classes.validation.run_limits import RUN_HOURS_MOST
from cluster.manifests.run_spec import HOME, JOB, NOTEBOOK, PRIORITIES
from workloads.core.environment import ENV_NAME_LIMIT
from workloads.launch.jobs.policy import LEVEL_LIMIT, RETRIES_LIMIT, SCRIPT_LIMIT, WORKERS_LIMIT
from workloads.launch.options import (
    ENV_LIMIT,
    ENV_VALUE_LIMIT,
    PATH_LIMIT,
    REFERENCE_LIMIT,
    REPOSITORY_LIMIT,
    SECRETS_LIMIT,
    Options,
)
from workloads.launch.policy import COMMAND_WORD_LENGTH_LIMIT, COMMAND_WORDS_LIMIT, VOLUME_GIB_LIMIT
from workloads.launch.types import LaunchSpec
from workloads.models import Workload

VISIBILITIES = [str(one) for one in Workload.Visibility]
TERMS_LIMIT = 2**31 - 1
# Far beyond any node; the verb checks against the limits of the class.
SIZE_MOST = 1_000_000
TERMS_HELP = (
    "Version of the class's terms that you have read and accept. Required once per version if the class has terms."
)


class OptionsSerializer(serializers.Serializer[Any]):
    """Omitted options use the defaults of the class."""

    cpu = serializers.IntegerField(
        required=False, allow_null=True, validators=documented_range(1, SIZE_MOST), help_text="Cores per worker."
    )
    memory_gib = serializers.IntegerField(
        required=False, allow_null=True, validators=documented_range(1, SIZE_MOST), help_text="Per worker."
    )
    shared_memory_gib = serializers.IntegerField(
        required=False,
        allow_null=True,
        validators=documented_range(1, SIZE_MOST),
        help_text="/dev/shm, part of the memory.",
    )
    mount_path = serializers.CharField(
        required=False, allow_blank=True, max_length=PATH_LIMIT, help_text=f"Mount path: {HOME} or below."
    )
    env = serializers.DictField(
        child=serializers.CharField(allow_blank=True, max_length=ENV_VALUE_LIMIT, trim_whitespace=False),
        required=False,
        validators=documented_length(ENV_LIMIT),
        help_text="Environment variables. All team members can read them.",
    )
    repository = serializers.CharField(
        required=False, allow_blank=True, max_length=REPOSITORY_LIMIT, help_text="Cloned before the first start."
    )
    reference = serializers.CharField(
        required=False, allow_blank=True, max_length=REFERENCE_LIMIT, help_text="Branch or tag."
    )
    run_hours = serializers.IntegerField(
        required=False,
        allow_null=True,
        validators=documented_range(1, RUN_HOURS_MOST),
        help_text="Time limit from its start. Omitted: the class's limit, or none.",
    )
    secrets = serializers.ListField(
        child=serializers.CharField(max_length=ENV_NAME_LIMIT),
        required=False,
        validators=documented_length(SECRETS_LIMIT),
        help_text="Names of the team's secrets. Each is set as an environment variable.",
    )
    workers = serializers.IntegerField(
        required=False,
        allow_null=True,
        validators=documented_range(1, WORKERS_LIMIT),
        help_text="Workers of a job, each with `units`. All start together or none. Default 1.",
    )
    script = serializers.CharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        validators=documented_length(SCRIPT_LIMIT),
        help_text="Of a job, instead of `command`.",
    )
    retries = serializers.IntegerField(
        required=False,
        allow_null=True,
        validators=documented_range(0, RETRIES_LIMIT),
        help_text="Of a job: retries after a crash. Default 0.",
    )
    priority = DocumentedChoiceField(
        choices=PRIORITIES, required=False, allow_blank=True, help_text="Omitted: the default of its kind."
    )
    checkpoints = serializers.BooleanField(
        required=False,
        help_text="The job uses checkpointing. Required for jobs on classes with borrowing or with spot nodes.",
    )
    accepts_interruption = serializers.BooleanField(
        required=False,
        help_text="You accept that the notebook loses its memory when its spot node is reclaimed. Required for "
        "notebooks on classes with spot nodes.",
    )
    gpu_memory_gib = serializers.IntegerField(
        required=False,
        allow_null=True,
        validators=documented_range(1, SIZE_MOST),
        help_text="Least memory of each device. Omitted: any of the class.",
    )
    topology_level = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=LEVEL_LIMIT,
        help_text="Of a job: a level of the class's `topology`. All workers run in one domain of it, if they fit "
        "there. Omitted: anywhere in the class.",
    )
    topology_required = serializers.BooleanField(
        required=False,
        help_text="The job is queued until all workers fit into one domain of `topology_level`.",
    )


class NewOptionsSerializer(OptionsSerializer, StrictSerializer):
    def to_internal_value(self, data: Any) -> Options:
        return Options.from_json(super().to_internal_value(data))


class WantedSerializer(StrictSerializer):
    kind = serializers.ChoiceField(choices=[NOTEBOOK, JOB], default=NOTEBOOK)
    gpu_class = serializers.CharField(max_length=40, help_text="Slug of a class in the catalog.")
    units = serializers.IntegerField(min_value=1, max_value=10_000, default=1, help_text="Per worker.")
    image = serializers.CharField(
        max_length=300, help_text="Catalog image by name or reference, or a reference under a prefix."
    )
    command = serializers.ListField(
        child=serializers.CharField(max_length=COMMAND_WORD_LENGTH_LIMIT, trim_whitespace=False),
        max_length=COMMAND_WORDS_LIMIT,
        default=list,
    )
    volume = serializers.CharField(
        max_length=40, allow_blank=True, default="", help_text="Empty: files are deleted when it stops."
    )
    volume_gib = serializers.IntegerField(min_value=1, max_value=VOLUME_GIB_LIMIT, default=10)
    volume_class = serializers.CharField(
        max_length=253,
        allow_blank=True,
        default="",
        help_text="StorageClass of a new volume, one that the site offers. Empty: the first one.",
    )
    accept_terms = serializers.IntegerField(min_value=0, max_value=TERMS_LIMIT, default=0, help_text=TERMS_HELP)
    visibility = serializers.ChoiceField(
        choices=VISIBILITIES,
        required=False,
        help_text="Who can open a notebook: `private`: you alone; `team`: every member who may launch. Omitted: the "
        "team's default, or as it was.",
    )
    options = NewOptionsSerializer(default=Options)

    def wanted(self, name: str) -> LaunchSpec:
        data = dict(self.validated_data)
        return LaunchSpec(**{**data, "name": name, "command": tuple(data["command"])})


class LaunchSerializer(WantedSerializer):
    name = serializers.CharField(max_length=40)

    def wanted(self, name: str = "") -> LaunchSpec:
        data = dict(self.validated_data)
        return LaunchSpec(**{**data, "command": tuple(data["command"])})
