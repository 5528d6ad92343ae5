"""What may be kept by a browser or a proxy: files, and nothing that was rendered for a person."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from accounts.models import User
from tenants.models import Tenant
from tests.support.http.routes import all_routes, filled

pytestmark = pytest.mark.django_db


def test_no_answer_for_a_person_is_kept(team_a: Tenant, alice: User, olga: User) -> None:
    """Every address, with and without a session: pages, JSON, redirects, refusals."""
    values, kept, checked = {"tenant": "team-a", "slug": "team-a", "name": "one", "pk": "1"}, [], 0
    for who in (None, alice, olga):
        client = Client(raise_request_exception=False)
        if who is not None:
            client.force_login(who)
        for route, pattern in all_routes():
            if route.startswith("static") or pattern.name == "logout":
                continue
            answer = client.get(filled(route, values))
            checked += 1
            if "no-store" not in answer.headers.get("Cache-Control", ""):
                kept.append((route, answer.status_code))
    assert kept == []
    assert checked > 300


def test_files_are_kept(client: Client) -> None:
    assert client.get("/static/portal/portal.js")["Cache-Control"] == "max-age=60, public"
    assert client.get("/static/no-such-file.js")["Cache-Control"] == "no-store"


def test_files_with_a_hash_in_their_name_are_kept_for_ever(tmp_path: Path, settings) -> None:
    """As in the image: see the Dockerfile and STATIC_ROOT in the settings."""
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STATIC_ROOT = str(tmp_path)
    settings.WHITENOISE_USE_FINDERS = False
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"},
    }
    call_command("collectstatic", interactive=False, verbosity=0)
    client = Client()
    (hashed,) = tmp_path.glob("portal/portal.*.css")

    assert client.get(f"/static/portal/{hashed.name}")["Cache-Control"] == "max-age=315360000, public, immutable"
    assert client.get("/static/portal/portal.css")["Cache-Control"] == "max-age=60, public"
