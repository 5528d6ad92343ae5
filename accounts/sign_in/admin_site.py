"""Access to the Django admin: by the portal's own sign-in, which delays repeated attempts, and a second factor."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from accounts.core.second_factor import showed_second_factor
from portal.web.safe_redirect import safe_redirect_target


def may_open_admin(request: HttpRequest) -> bool:
    """Staff whose session has passed a second factor. Replaces Django's own rule, which requires only staff."""
    return _is_staff(request) and showed_second_factor(request)


def admin_sign_in(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
    """Replaces Django's own form. Signed-in users who are not staff get 404."""
    go_on = safe_redirect_target(request.GET.get("next"), otherwise=reverse("admin:index"))
    if not request.user.is_authenticated:
        return redirect_to_login(go_on)
    if not _is_staff(request):
        raise Http404
    if may_open_admin(request):
        return redirect("admin:index")
    return redirect(f"{reverse('second-factor')}?{urlencode({'next': go_on})}")


def admin_password_change(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
    """Replaces Django's own form, which ends no session and records no event."""
    return redirect("account")


def _is_staff(request: HttpRequest) -> bool:
    return request.user.is_active and getattr(request.user, "is_staff", False)
