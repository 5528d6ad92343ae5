"""Observe-only as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer


class SetObserveOnlySerializer(StrictSerializer):
    wanted = serializers.BooleanField(help_text="true: the portal writes nothing to the cluster.")


class ForeignNamespaceSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    pods = serializers.IntegerField(help_text="Pods that the portal did not create and that request devices.")
    devices = serializers.SerializerMethodField()

    def get_devices(self, row: Any) -> dict[str, int]:
        return dict(row.devices)


class ObserveOnlySerializer(serializers.Serializer[Any]):
    observe_only = serializers.SerializerMethodField()
    since = serializers.DateTimeField(allow_null=True)
    by = serializers.CharField(allow_blank=True)
    waiting = serializers.IntegerField(source="waiting.count", help_text="Rows whose next write was not sent.")
    namespaces = ForeignNamespaceSerializer(
        many=True, allow_null=True, help_text="null while the pods of the cluster are unknown."
    )

    def get_observe_only(self, page: Any) -> bool:
        return page.since is not None
