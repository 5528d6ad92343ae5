"""How long runs of a class may take, and when idle notebooks are stopped: what is refused and what is shown."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor, system_actor
from accounts.models import User
from catalog.classes import actions
from catalog.classes.validation import run_limits
from catalog.models import GpuClass
from portal.core.errors import Refused
from tests.support.rows import make


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"run_hours_limit": None, "idle_stop_minutes": None}, ""),
        ({"run_hours_limit": 1, "idle_stop_minutes": 5}, ""),
        ({"run_hours_limit": 8760, "idle_stop_minutes": 10080}, ""),
        ({"run_hours_limit": 0, "idle_stop_minutes": None}, "1 to 8760 hours, not 0"),
        ({"run_hours_limit": 8761, "idle_stop_minutes": None}, "1 to 8760 hours, not 8761"),
        ({"run_hours_limit": None, "idle_stop_minutes": 4}, "5 to 10080 minutes, not 4"),
        ({"run_hours_limit": None, "idle_stop_minutes": 10081}, "5 to 10080 minutes, not 10081"),
        ({"run_hours_limit": None, "idle_stop_minutes": None, "idle_minutes": 5}, ""),
        ({"run_hours_limit": None, "idle_stop_minutes": None, "idle_minutes": 4}, "5 to 10080 minutes, not 4"),
        ({"run_hours_limit": None, "idle_stop_minutes": None, "idle_minutes": 10081}, "10080 minutes, not 10081"),
    ],
)
def test_what_is_refused(values: dict[str, Any], words: str) -> None:
    found = list(run_limits.run_limit_problems({"idle_minutes": 60, **values}))
    assert len(found) == bool(words)
    assert not words or words in found[0].message


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run_hours_limit", 0),
        ("idle_stop_minutes", 4),
        ("idle_minutes", 10081),
        ("log_retention_days", 366),
        ("damping_minutes", 1441),
    ],
)
def test_an_edit_and_the_table_refuse_it(a100: GpuClass, field: str, value: int) -> None:
    with pytest.raises(Refused) as refused:
        actions.edit_class(a100.pk, by=system_actor("test"), **{field: value})
    assert refused.value.refusal.field == field
    with pytest.raises(IntegrityError), transaction.atomic():
        GpuClass.objects.filter(pk=a100.pk).update(**{field: value})


@pytest.mark.django_db
def test_the_classs_page_and_the_api_say_it(a100: GpuClass, alice: User, client: Client) -> None:
    client.force_login(alice)
    before = client.get(f"/catalog/{a100.slug}").content.decode()
    assert "Time limit" not in before
    actions.edit_class(a100.pk, by=system_actor("test"), run_hours_limit=24, idle_stop_minutes=60, production_limit=3)
    page = client.get(f"/catalog/{a100.slug}").content.decode()
    assert "24 h from the start of a run" in page
    assert "stopped after 60 min without activity" in page
    assert "at most 3 units per team" in page
    assert "kept for 14 days" in page
    assert "users are notified after 60 minutes without GPU activity" in page
    actions.edit_class(a100.pk, by=system_actor("test"), idle_action="stop", idle_minutes=90)
    page = client.get(f"/catalog/{a100.slug}").content.decode()
    assert "users are warned after 90 minutes without GPU activity, then the run is stopped" in page
    actions.edit_class(a100.pk, by=system_actor("test"), log_retention_days=0)
    assert "not kept" in client.get(f"/catalog/{a100.slug}").content.decode()
    by = Actor(user=alice, via="page")
    token = api_token_actions.create_token(name="t", scopes=["read"], expires_in_days=1, by=by)[1]
    answer = client.get(f"/api/v1/classes/{a100.slug}", headers={"Authorization": f"Bearer {token}"}).json()
    limits = ("run_hours_limit", "idle_stop_minutes", "production_limit")
    assert tuple(answer[name] for name in limits) == (24, 60, 3)
    assert (answer["idle_action"], answer["idle_minutes"]) == ("stop", 90)
    assert answer["log_retention_days"] == 0


@pytest.mark.django_db
def test_storage_has_neither(a100: GpuClass) -> None:
    storage = make.storage(a100.cluster)
    with pytest.raises(Refused) as refused:
        actions.edit_class(storage.pk, by=system_actor("test"), run_hours_limit=24)
    assert refused.value.refusal.field == "run_hours_limit"
