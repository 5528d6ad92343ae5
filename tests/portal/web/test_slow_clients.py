"""A client that reads slowly keeps a thread of web, but no connection to the database."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import RequestFactory


@pytest.mark.django_db(transaction=True)
def test_the_connection_is_given_back_before_the_response_is_read() -> None:
    from portal.wsgi import application  # it freezes what the process has loaded

    seen: list[str] = []
    environ = RequestFactory().get("/readyz").environ
    response = application(environ, lambda status, _headers: seen.append(status))

    assert seen == ["200 OK"]
    assert connection.connection is None
    assert b"".join(response).startswith(b"ready")
