"""A user who signs in through the tests' issuer."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from tests.support.identity.issuer import Issuer


@dataclass
class Visitor:
    issuer: Issuer
    client: Client = field(default_factory=Client)

    def leave(self, go_on: str = "/tokens") -> str:
        """Begins a sign-in and returns the URL to which the portal sends the browser."""
        page = self.client.post("/login/oidc", {"next": go_on})
        assert page.status_code == 200, page.content
        found = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', page.text)
        assert found is not None
        return html.unescape(found[1])

    def sign_in(self, **changed: str) -> Any:
        """Signs in through the issuer and returns the answer; `changed` overrides parameters of the callback."""
        code, state = self.issuer.authorized(self.leave())
        return self.client.get("/login/oidc/back", {"code": code, "state": state} | changed)

    @property
    def is_in(self) -> bool:
        return bool(self.client.get("/tokens").status_code == 200)
