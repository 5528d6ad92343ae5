"""An OIDC issuer for each test, and a browser that signs in with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.accounts.sign_in.visitor import Visitor
from tests.support.identity.issuer import Issuer, issuing


@pytest.fixture
def issuer(settings: Any) -> Iterator[Issuer]:
    """The issuer that the portal is configured with, until a test changes it."""
    with issuing() as found:
        settings.OIDC = found.sso()
        yield found


@pytest.fixture
def visitor(issuer: Issuer, db: None) -> Visitor:
    return Visitor(issuer)
