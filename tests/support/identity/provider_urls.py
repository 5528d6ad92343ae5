"""URLs of the real issuer, and the groups that it reports for a user."""

from __future__ import annotations

import json
from typing import Any

from allauth.idp.oidc.adapter import DefaultOIDCAdapter
from django.conf import settings
from django.urls import include, path

urlpatterns = [path("", include("allauth.idp.urls")), path("accounts/", include("allauth.urls"))]


class Adapter(DefaultOIDCAdapter):
    def get_claims(self, purpose: Any, user: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        claims: dict[str, Any] = super().get_claims(purpose, user, *args, **kwargs)
        groups = json.loads((settings.FOLDER / "groups.json").read_text())
        return claims | {"groups": groups.get(user.email, [])}
