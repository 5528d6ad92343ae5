"""Scopes: what a token may do at most. Sessions have all of them; what people may do is asked by policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.edge import actor
from accounts.models import Scope
from accounts.policy import person_refusal, scope_refusal
from portal.errors import refuse_if

if TYPE_CHECKING:
    # DRF's views import this module through the settings.
    from rest_framework.views import APIView


class HasScope(BasePermission):
    """Every API view says `required_scope = Scope.READ`, and `required_scopes = {"POST": …}` where methods differ.

    A view that says neither answers nobody: forgetting is a mistake that shows with the first request. What concerns
    a person and no team says `is_personal = True`, and takes no token of a team.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        scope = scope_of(view, request.method or "GET")
        by = actor(request)
        refuse_if(person_refusal(by) if getattr(view, "is_personal", False) else None)
        refuse_if(scope_refusal(by, scope))
        return True


def scope_of(view: APIView, method: str) -> Scope:
    scopes: dict[str, Scope] = getattr(view, "required_scopes", {})
    found = scopes.get(method, getattr(view, "required_scope", None))
    if found is None:
        raise ImproperlyConfigured(f"{type(view).__name__} names no required_scope for {method}.")
    return found
