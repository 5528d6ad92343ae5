"""An issuer for each test, and the browser of somebody who signs in with it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import Client

from tests.support.identity.issuer import Issuer, issuing


@pytest.fixture
def issuer(settings: Any) -> Iterator[Issuer]:
    """The portal's own, until a test says otherwise."""
    with issuing() as found:
        settings.OIDC = found.sso()
        yield found


@dataclass
class Visitor:
    issuer: Issuer
    client: Client = field(default_factory=Client)

    def leave(self, go_on: str = "/tokens") -> str:
        """Where the portal sends the browser."""
        page = self.client.post("/login/oidc", {"next": go_on})
        assert page.status_code == 200, page.content
        found = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', page.text)
        assert found is not None
        return html.unescape(found[1])

    def sign_in(self, **changed: str) -> Any:
        """There and back; `changed`: of what the browser brings back."""
        code, state = self.issuer.authorized(self.leave())
        return self.client.get("/login/oidc/back", {"code": code, "state": state} | changed)

    @property
    def is_in(self) -> bool:
        return bool(self.client.get("/tokens").status_code == 200)


@pytest.fixture
def visitor(issuer: Issuer, db: None) -> Visitor:
    return Visitor(issuer)
