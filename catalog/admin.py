"""The Django admin of the catalog. It changes nothing itself: it calls the same actions as pages, API and command."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.core.request_actor import actor
from catalog.classes import actions, policy
from catalog.classes.admin import LifeCycleStepsMixin
from catalog.classes.proposals.admin import ProposalPagesMixin
from catalog.images import actions as image_actions
from catalog.models import GpuClass, Image
from portal.core.errors import Refused
from portal.web.refusals import refusal_in_form


class _ByAction(admin.ModelAdmin):
    """Permissions are the policy's; nothing is deleted in bulk."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._may_edit(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may_edit(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._may_edit(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may_edit(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def _may_edit(self, request: HttpRequest) -> bool:
        return request.user.is_authenticated and policy.may_edit(actor(request)) is None


class ClassForm(forms.ModelForm):
    """Runs the action while the form is checked, so that a refusal stands beside its field."""

    class Meta:
        model = GpuClass
        fields = ("slug", *actions.EDITABLE_FIELDS)

    request: HttpRequest

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if self.errors:
            return values
        by = actor(self.request)
        with refusal_in_form(self):
            if self.instance.pk is None:
                slug = values.pop("slug")
                self.instance = actions.create_class(slug=slug, by=by, **values)
            else:
                values.pop("slug", None)
                self.instance = actions.edit_class(self.instance.pk, by=by, **values)
        return values

    def _post_clean(self) -> None:
        """The row is what the action made of it."""


@admin.register(GpuClass)
class ClassAdmin(LifeCycleStepsMixin, ProposalPagesMixin, _ByAction):
    form = ClassForm
    list_display = ("slug", "name", "life_cycle", "resource", "sharing", "partition", "promise_limit")
    list_filter = ("life_cycle", "vendor", "sharing", "interface")
    search_fields = ("slug", "name", "product", "resource")
    actions = ("open_classes", "retire", "close")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        return type("ClassForm", (form,), {"request": request})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("slug",) if obj else ()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Done by the action."""

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Events are the record."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Events are the record."""

    @admin.action(description="Open")
    def open_classes(self, request: HttpRequest, chosen: QuerySet[GpuClass]) -> None:
        self._move(request, chosen, "active")

    @admin.action(description="Retire: nothing more is given")
    def retire(self, request: HttpRequest, chosen: QuerySet[GpuClass]) -> None:
        self._move(request, chosen, "retiring")

    @admin.action(description="Close a class that is being retired")
    def close(self, request: HttpRequest, chosen: QuerySet[GpuClass]) -> None:
        self._move(request, chosen, "retired")

    def _move(self, request: HttpRequest, chosen: QuerySet[GpuClass], to: str) -> None:
        for gpu_class in chosen:
            try:
                actions.move_class(gpu_class.pk, to=to, by=actor(request))
            except Refused as refused:
                self.message_user(request, str(refused), messages.ERROR)


class ImageForm(forms.ModelForm):
    """As ClassForm: the action is run while the form is checked."""

    class Meta:
        model = Image
        fields = ("name", *image_actions.IMAGE_FIELDS)

    request: HttpRequest

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if self.errors:
            return values
        name = values.pop("name", self.instance.name)
        if self.instance.pk is None and Image.objects.filter(name=name).exists():
            raise ValidationError({"name": "An image of this name is in the list already; open that one to change it."})
        try:
            self.instance = image_actions.put_image(name=name, by=actor(self.request), **values)
        except Refused as refused:
            field = refused.refusal.field
            raise ValidationError({field: str(refused)} if field in self.fields else str(refused)) from refused
        return values

    def _post_clean(self) -> None:
        """The row is what the action made of it."""


@admin.register(Image)
class ImageAdmin(_ByAction):
    form = ImageForm
    list_display = ("name", "version", "reference", "kind", "vendor", "min_cuda", "deprecated_since", "position")
    list_filter = ("kind", "vendor")
    search_fields = ("name", "reference", "contents")
    actions = ("remove",)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        return type("ImageForm", (form,), {"request": request})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("name",) if obj else ()

    @admin.action(description="Remove: no longer offered; runs keep what they were launched with")
    def remove(self, request: HttpRequest, chosen: QuerySet[Image]) -> None:
        for image in chosen:
            image_actions.remove_image(image.pk, by=actor(request))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Done by the action."""

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Events are the record."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Events are the record."""
