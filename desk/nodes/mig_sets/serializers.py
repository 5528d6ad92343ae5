"""Sets of nodes with MIG, and plans, as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import documented_length
from desk.nodes.forms import DEMAND_LIMIT
from operations.maintenance.policy import NODES_MOST

PROFILES_MOST = 50
_COUNTS = "Instances by profile; `whole` are GPUs without MIG."


class LeftOutNodeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    reason = serializers.CharField()


class MigNodeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    gpus = serializers.IntegerField()
    offers = serializers.DictField(child=serializers.IntegerField(), help_text=_COUNTS)


class MigDemandSerializer(serializers.Serializer[Any]):
    profile = serializers.CharField(help_text="`whole`: GPUs without MIG.")
    classes = serializers.SerializerMethodField(help_text="Classes of which one unit is such an instance.")
    now = serializers.IntegerField(help_text="On the nodes of the set.")
    elsewhere = serializers.IntegerField(help_text="On all other nodes.")
    granted = serializers.IntegerField(help_text="The most at one time from now on.")
    requested = serializers.IntegerField(help_text="What pending requests would add.")
    used = serializers.IntegerField(
        allow_null=True, help_text="Held at once in 95 of 100 hours of the last 30 days; null: unknown."
    )
    queued = serializers.IntegerField(allow_null=True, help_text="null: unknown.")
    wanted = serializers.IntegerField(source="proposed", help_text="Proposed for this set.")
    kept = serializers.IntegerField(source="floor", help_text="Granted instances that no other node has.")

    def get_classes(self, line: Any) -> list[str]:
        return [need.slug for need in line.needs]


class MigSetSerializer(serializers.Serializer[Any]):
    set = serializers.CharField(source="key")
    product = serializers.CharField()
    strategy = serializers.SerializerMethodField(help_text="MIG strategy of the device plugin: single or mixed.")
    nodes = MigNodeSerializer(many=True)
    left_out = LeftOutNodeSerializer(many=True)

    def get_strategy(self, one: Any) -> str:
        return "single" if one.is_single else "mixed"


class MigGroupSerializer(serializers.Serializer[Any]):
    gpus = serializers.IntegerField()
    instances = serializers.DictField(child=serializers.IntegerField(), help_text="Of each of these GPUs.")


class PlannedMigNodeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    is_changed = serializers.BooleanField()
    layout = MigGroupSerializer(many=True, help_text="Empty: it stays as it is.")
    offers = serializers.DictField(child=serializers.IntegerField(), help_text=f"Afterwards. {_COUNTS}")


class BrokenGrantSerializer(serializers.Serializer[Any]):
    gpu_class = serializers.CharField(source="need.slug")
    granted = serializers.IntegerField(help_text="With those of classes that use the same units.")
    now = serializers.IntegerField(help_text="Units that exist now.")
    then = serializers.IntegerField(help_text="Units that would exist.")


class MigMovedRunSerializer(serializers.Serializer[Any]):
    team = serializers.CharField(source="team_slug")
    workload = serializers.CharField(source="name")
    person = serializers.CharField(help_text="Who requested the run.")
    ends_at = serializers.DateTimeField(allow_null=True, help_text="null: no time limit.")
    nodes = serializers.ListField(child=serializers.CharField())


class MigStepSerializer(serializers.Serializer[Any]):
    nodes = serializers.ListField(child=serializers.CharField())
    mig_config = serializers.CharField(source="config")
    expected = serializers.DictField(source="devices", child=serializers.IntegerField())
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    missing = serializers.DictField(
        source="short", child=serializers.IntegerField(), help_text="Granted instances that do not exist meanwhile."
    )
    configuration = serializers.CharField(source="parted", help_text="For mig-parted, as YAML.")


class MigSetPlanSerializer(serializers.Serializer[Any]):
    set = serializers.CharField()
    demand = MigDemandSerializer(many=True)
    nodes = PlannedMigNodeSerializer(many=True)
    served = serializers.DictField(child=serializers.IntegerField())
    unserved = serializers.DictField(child=serializers.IntegerField())
    spare = serializers.DictField(child=serializers.IntegerField(), help_text="Instances that nobody asked for.")
    stranded_memory_slices = serializers.IntegerField(help_text="Memory slices that belong to no instance.")
    broken = BrokenGrantSerializer(many=True, help_text="Classes of which fewer units would exist than are granted.")
    runs = MigMovedRunSerializer(many=True, help_text="On nodes that change.")
    other_pods = serializers.ListField(
        child=serializers.CharField(), help_text="NAMESPACE/NAME of pods outside the portal on nodes that change."
    )
    steps = MigStepSerializer(
        many=True, help_text="Maintenances, one after the other, as POST /maintenances takes them."
    )
    is_best = serializers.BooleanField(help_text="It is proven that no other layouts serve more.")
    at_most = serializers.IntegerField(help_text="No layouts serve more wanted instances than this.")
    is_fewest = serializers.BooleanField(help_text="It is proven that no fewer changed nodes serve as much.")
    changes_least = serializers.IntegerField(help_text="So many nodes have to change at least.")
    is_known = serializers.BooleanField(help_text="Whether there are current updates from the cluster.")


class MigSetPlanRequestSerializer(StrictSerializer):
    set = serializers.CharField(max_length=200, help_text="Of GET /mig-sets.")
    nodes = serializers.ListField(
        child=serializers.CharField(max_length=253),
        required=False,
        min_length=1,
        max_length=NODES_MOST,
        help_text=f"Some nodes of the set. Default: all, which is refused if there are more than {NODES_MOST}.",
    )
    wanted = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=DEMAND_LIMIT),
        required=False,
        validators=documented_length(PROFILES_MOST),
        help_text="Instances by profile. Default for each profile: as proposed.",
    )
    keeps_grants = serializers.BooleanField(
        required=False,
        help_text="Default: true. false: plans only for what is wanted, and says which grants are broken.",
    )
