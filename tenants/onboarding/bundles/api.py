"""/api/v1/bundles: the bundles of quota that a new team can begin with."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from tenants.models import Bundle
from tenants.onboarding.bundles import queries as bundle_queries
from tenants.onboarding.bundles.serializers import BundleSerializer


class Bundles(generics.GenericAPIView[Bundle]):
    required_scope = Scope.READ
    serializer_class = BundleSerializer
    filter_backends = ()
    keyset = ("position", "name")
    queryset = Bundle.objects.none()  # for the schema

    @extend_schema(
        operation_id="bundles_list",
        summary="List the quota bundles for new teams",
        responses=BundleSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = bundle_queries.bundle_rows(self.paginate_queryset(bundle_queries.open_bundles()) or [])
        return self.get_paginated_response(BundleSerializer(rows, many=True).data)
