"""The Django admin of access to classes, which calls the actions. Part of tenants.admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from accounts.core.actor import Actor
from accounts.core.admin_base import ActionForm, ActionModelAdmin
from accounts.core.request_actor import actor
from portal.core.errors import Refusal
from tenants.class_access import actions as class_access_actions
from tenants.core import policy as core_policy
from tenants.models import ClassAccess


class AccessForm(ActionForm):
    class Meta:
        model = ClassAccess
        fields = ("gpu_class", "tenant")

    def act(self, values: dict[str, Any], *, by: Actor) -> ClassAccess:
        return class_access_actions.allow_team(values["gpu_class"].pk, tenant=values["tenant"].slug, by=by)


@admin.register(ClassAccess)
class AccessAdmin(ActionModelAdmin):
    form = AccessForm
    can_add = True
    can_delete = True
    list_display = ("gpu_class", "tenant")
    list_filter = ("gpu_class",)
    list_select_related = ("gpu_class", "tenant")

    def refusal(self, by: Actor) -> Refusal | None:
        return core_policy.may_operate(by)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """No bulk actions: each access that ends gets its own Event."""
        return {}

    def delete_model(self, request: HttpRequest, obj: ClassAccess) -> None:
        class_access_actions.disallow_team(obj.gpu_class_id, tenant=obj.tenant.slug, by=actor(request))
