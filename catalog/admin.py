"""The Django admin of the catalog. It changes nothing itself: it calls the same actions as pages, API and command."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.core.actor import Actor
from accounts.core.admin_base import ActionForm, ActionModelAdmin
from accounts.core.request_actor import actor
from catalog.classes import actions, policy
from catalog.classes.admin import LifeCycleStepsMixin
from catalog.classes.proposals.admin import ProposalPagesMixin
from catalog.images import actions as image_actions
from catalog.models import GpuClass, Image
from portal.core.errors import Refusal


@admin.register(GpuClass)
class ClassAdmin(LifeCycleStepsMixin, ProposalPagesMixin, ActionModelAdmin):
    """Fields are read-only: the catalog's editor (desk/catalog/editor) changes them."""

    list_display = ("slug", "name", "life_cycle", "resource", "sharing", "partition", "promise_limit")
    list_filter = ("life_cycle", "vendor", "sharing", "interface")
    search_fields = ("slug", "name", "product", "resource")
    fields = ("slug", *actions.EDITABLE_FIELDS)

    def refusal(self, by: Actor) -> Refusal | None:
        return policy.may_edit(by)


class ImageForm(ActionForm):
    class Meta:
        model = Image
        fields = ("name", *image_actions.IMAGE_FIELDS)

    def act(self, values: dict[str, Any], *, by: Actor) -> Image:
        name = values.pop("name", self.instance.name)
        if self.instance.pk is None and Image.objects.filter(name=name).exists():
            raise ValidationError({"name": "An image of this name already exists; open it to change it."})
        return image_actions.put_image(name=name, by=by, **values)


@admin.register(Image)
class ImageAdmin(ActionModelAdmin):
    form = ImageForm
    can_add = True
    can_change = True
    list_display = ("name", "version", "reference", "kind", "vendor", "min_cuda", "deprecated_since", "position")
    list_filter = ("kind", "vendor")
    search_fields = ("name", "reference", "contents")
    actions = ("remove",)

    def refusal(self, by: Actor) -> Refusal | None:
        return policy.may_edit(by)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("name",) if obj else ()

    @admin.action(description="Remove: no longer offered; runs keep the image they were launched with")
    def remove(self, request: HttpRequest, chosen: QuerySet[Image]) -> None:
        for image in chosen:
            image_actions.remove_image(image.pk, by=actor(request))
