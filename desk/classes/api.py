"""/api/v1/classes and /api/v1/images: what teams can request, its contract, and which image runs on it.

In this app and not in `catalog`, because some classes are visible to named teams only.
"""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.request_actor import actor, staff
from accounts.models import Scope
from accounts.rest.strict.query import choice_parameter, text_parameter
from catalog.models import ClassPrice, GpuClass, Image
from cluster.reads import queries as read_queries
from desk.classes import api_rows
from desk.classes.prices import prices_of
from desk.classes.serializers import (
    IMAGE_KINDS,
    ClassDetailSerializer,
    ClassPriceSerializer,
    ClassSerializer,
    ImageSerializer,
)
from portal.core.errors import get_or_refuse, refuse
from tenants.class_access import queries as class_access_queries


class Classes(generics.GenericAPIView[GpuClass]):
    required_scope = Scope.READ
    serializer_class = ClassSerializer
    filter_backends = ()
    keyset = ("slug", "id")
    queryset = GpuClass.objects.none()  # for the schema

    @extend_schema(
        operation_id="classes_list",
        summary="The classes that the caller may see, by slug",
        responses=ClassSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        by, cluster = actor(request), read_queries.current_cluster()
        page = self.paginate_queryset(class_access_queries.visible_classes(by, cluster)) or []
        found = api_rows.class_rows(cluster, page, by=by)
        return self.get_paginated_response(ClassSerializer(found, many=True).data)


class ClassDetail(APIView):
    required_scope = Scope.READ

    @extend_schema(operation_id="classes_get", summary="One class", responses=ClassDetailSerializer)
    def get(self, request: Request, slug: str) -> Response:
        by, cluster = actor(request), read_queries.current_cluster()
        found = get_or_refuse(class_access_queries.visible_classes(by, cluster), slug=slug)
        return Response(ClassDetailSerializer(api_rows.class_detail(cluster, found, by=by)).data)


class Prices(generics.GenericAPIView[ClassPrice]):
    required_scope = Scope.READ
    serializer_class = ClassPriceSerializer
    filter_backends = ()
    keyset = ("-since", "-id")
    queryset = ClassPrice.objects.none()  # for the schema

    @extend_schema(
        operation_id="classes_prices",
        summary="For operators and auditors: the prices that a class had, the latest first",
        responses={200: ClassPriceSerializer(many=True), 404: None},
    )
    def get(self, request: Request, slug: str) -> Response:
        staff(request)
        # Also of a draft or a retired class.
        one = get_or_refuse(GpuClass.objects.filter(cluster=read_queries.current_cluster()), slug=slug)
        page = self.paginate_queryset(prices_of(one)) or []
        return self.get_paginated_response(ClassPriceSerializer(page, many=True).data)


class Images(generics.GenericAPIView[Image]):
    required_scope = Scope.READ
    query = (
        text_parameter("gpu_class", 60, "Slug of a class: adds to each image whether it fits."),
        choice_parameter("kind", IMAGE_KINDS, "What the image is for."),
    )
    serializer_class = ImageSerializer
    filter_backends = ()
    keyset = ("position", "id")
    queryset = Image.objects.none()  # for the schema

    @extend_schema(
        operation_id="images_list",
        summary="The images that workloads can use, in the order set by staff",
        responses=ImageSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        kind, slug = request.query_params.get("kind", ""), request.query_params.get("gpu_class", "")
        if kind and kind not in IMAGE_KINDS:
            raise refuse(
                "bad_kind",
                f"Enter {' or '.join(IMAGE_KINDS)} as the kind of an image, not '{kind[:40]}'.",
                field="kind",
            )
        visible = class_access_queries.visible_classes(actor(request), read_queries.current_cluster())
        gpu_class = class_access_queries.class_to_filter(visible, slug) if slug else None
        page = self.paginate_queryset(self._images(kind)) or []
        found = api_rows.image_rows(page, gpu_class=gpu_class)
        return self.get_paginated_response(ImageSerializer(found, many=True).data)

    def _images(self, kind: str) -> QuerySet[Image]:
        found = Image.objects.select_related("successor")
        return found.filter(kind=kind) if kind else found
