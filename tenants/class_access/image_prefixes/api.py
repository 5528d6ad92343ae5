"""/api/v1/teams/<slug>/image-prefixes: the prefixes below which a team may use any image."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.strict.serializers import StrictSerializer, takes_no_fields
from accounts.rest.validators import documented_length
from accounts.rest.verb_view import VerbView
from catalog.images.image_references import PREFIX_LIMIT
from portal.core.errors import get_or_refuse
from tenants.class_access.image_prefixes import actions as image_prefixe_actions
from tenants.class_access.image_prefixes import queries as prefixes
from tenants.models import ImagePrefix, Tenant


class PrefixSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    prefix = serializers.CharField(help_text="Ends with a slash.")
    by = serializers.SerializerMethodField()
    allowed_at = serializers.DateTimeField()

    def get_by(self, row: ImagePrefix) -> str:
        return row.allowed_by.name if row.allowed_by else ""


class NewPrefixSerializer(StrictSerializer):
    prefix = serializers.CharField(
        validators=documented_length(PREFIX_LIMIT),
        help_text="Registry host and path, for example registry.example.org/vision/",
    )


class ImagePrefixes(VerbView, generics.GenericAPIView[ImagePrefix]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.ADMIN}
    serializer_class = PrefixSerializer
    filter_backends = ()
    keyset = ("prefix", "id")
    queryset = ImagePrefix.objects.none()  # for the schema

    @extend_schema(
        operation_id="image_prefixes_list",
        summary="List the image prefixes that are allowed to a team",
        responses=PrefixSerializer(many=True),
    )
    def get(self, request: Request, tenant: str) -> Response:
        team = get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=tenant)
        page = self.paginate_queryset(prefixes.prefix_rows(team.pk)) or []
        return self.get_paginated_response(PrefixSerializer(page, many=True).data)

    @extend_schema(
        operation_id="image_prefixes_allow",
        summary="Allow an image prefix (operators); 200 if it is already allowed",
        request=NewPrefixSerializer,
        responses={200: PrefixSerializer, 201: PrefixSerializer},
    )
    def post(self, request: Request, tenant: str) -> Response:
        get_or_refuse(Tenant.objects.visible_to(self.by), slug=tenant)
        typed = self.body(NewPrefixSerializer)
        row, is_new = image_prefixe_actions.allow_prefix(tenant, typed["prefix"], by=self.by)
        return Response(PrefixSerializer(row).data, status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)


class ImagePrefixDetail(VerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="image_prefixes_disallow",
        summary="Remove an image prefix (operators); running and queued workloads continue",
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, tenant: str, pk: int) -> Response:
        image_prefixe_actions.disallow_prefix(tenant, pk, by=self.by)
        return self.no_content()
