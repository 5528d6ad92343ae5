"""Scopes limit what a token may do. Sessions have all scopes; policies check what a user may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.core.policy import person_refusal, scope_refusal
from accounts.core.request_actor import actor
from accounts.models import Scope
from portal.core.errors import refuse_if

if TYPE_CHECKING:
    # DRF's views import this module through the settings.
    from rest_framework.views import APIView


class HasScope(BasePermission):
    """Every API view sets `required_scope = Scope.READ`, and `required_scopes = {"POST": …}` where methods differ. Of
    several scopes, one is enough here; the action checks which one is needed.

    A view with `is_for_any_token = True` takes every token, also one whose only scope does not apply at present.

    A view that sets neither refuses every request, so that the mistake shows with the first one. A view that concerns
    a user and no team sets `is_personal = True` and refuses tokens of teams.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        by, scopes = actor(request), scopes_of(view, request.method or "GET")
        refuse_if(person_refusal(by) if getattr(view, "is_personal", False) else None)
        if not getattr(view, "is_for_any_token", False) and not any(by.has_scope(scope) for scope in scopes):
            refuse_if(scope_refusal(by, scopes[0]))
        return True


def scopes_of(view: APIView, method: str) -> tuple[Scope, ...]:
    scopes: dict[str, Scope | tuple[Scope, ...]] = getattr(view, "required_scopes", {})
    found = scopes.get(method, getattr(view, "required_scope", None))
    if found is None:
        raise ImproperlyConfigured(f"{type(view).__name__} names no required_scope for {method}.")
    return found if isinstance(found, tuple) else (found,)
