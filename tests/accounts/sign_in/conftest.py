"""An issuer for each test, and the browser of somebody who signs in with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.accounts.sign_in.visitor import Visitor
from tests.support.identity.issuer import Issuer, issuing


@pytest.fixture
def issuer(settings: Any) -> Iterator[Issuer]:
    """The portal's own, until a test says otherwise."""
    with issuing() as found:
        settings.OIDC = found.sso()
        yield found


@pytest.fixture
def visitor(issuer: Issuer, db: None) -> Visitor:
    return Visitor(issuer)
