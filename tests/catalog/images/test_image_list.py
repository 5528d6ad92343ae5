"""The list of images that staff keep: by action and in the admin site, with an error message beside the wrong field."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.images import actions
from catalog.models import Image
from cluster.models import Cluster
from portal.core.errors import Refused
from tests.support.rows import make

pytestmark = pytest.mark.django_db
DIGEST = "sha256:" + "5c" * 32
PYTORCH: dict[str, Any] = {
    "version": "2.9.1",
    "reference": "docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime",
    "digest": DIGEST,
    "contents": "Python, PyTorch",
    "vendor": "nvidia",
    "min_cuda": "12.0",
    "deprecated_since": None,
    "successor": None,
    "kind": "job",
    "position": 10,
}


@pytest.fixture
def by_olga(olga: User) -> Actor:
    return Actor(user=olga, via="page")


def test_every_field_is_kept_and_one_event_says_what_changed(by_olga: Actor) -> None:
    new = actions.put_image(name="PyTorch 3", reference="x/y:3", kind="job", by=by_olga)
    actions.put_image(name="PyTorch", by=by_olga, **PYTORCH)
    actions.put_image(name="PyTorch", by=by_olga, **PYTORCH)  # the same again
    assert Event.objects.count() == 2

    changed = {"deprecated_since": date(2026, 1, 31), "successor": new}
    found = actions.put_image(name="PyTorch", by=by_olga, **{**PYTORCH, **changed})
    assert {field: getattr(found, field) for field in PYTORCH} == {**PYTORCH, **changed}
    event = Event.objects.latest("id")
    assert event.before == {"deprecated_since": None, "successor": None}
    assert event.after == {"deprecated_since": "2026-01-31", "successor": "PyTorch 3"}


@pytest.mark.parametrize(
    ("values", "code", "field"),
    [
        ({"digest": "sha256:abc"}, "invalid", "digest"),
        ({"vendor": "matrox"}, "invalid", "vendor"),
        ({"min_cuda": "12"}, "invalid", "min_cuda"),
        ({"reference": ""}, "invalid", "reference"),
        ({"kind": "service"}, "invalid", "kind"),
        ({"colour": "red"}, "unknown_field", "colour"),
    ],
)
def test_what_cannot_be_has_a_field_and_changes_nothing(
    by_olga: Actor, values: dict[str, Any], code: str, field: str
) -> None:
    actions.put_image(name="PyTorch", by=by_olga, **PYTORCH)
    with pytest.raises(Refused) as refused:
        actions.put_image(name="PyTorch", by=by_olga, **values)
    assert (refused.value.code, refused.value.refusal.field) == (code, field)
    assert Image.objects.values(*PYTORCH).get() == PYTORCH


def test_what_replaces_an_image_is_another_one_of_its_kind(by_olga: Actor) -> None:
    found = actions.put_image(name="PyTorch", by=by_olga, **PYTORCH)
    lab = actions.put_image(name="Lab", reference="x/lab:1", kind="notebook", by=by_olga)
    for successor, words in ((found, "cannot be its own successor"), (lab, "Lab is for a notebook")):
        with pytest.raises(Refused, match=words):
            actions.put_image(name="PyTorch", successor=successor, by=by_olga)


def test_the_admin_says_beside_the_field_what_is_wrong(olga: User, cluster: Cluster) -> None:
    client = Client()
    make.administrator(client, olga)
    typed = {key: "" if value is None else value for key, value in PYTORCH.items()}
    add = "/admin/catalog/image/add/"

    wrong = client.post(add, {**typed, "name": "PyTorch", "digest": "sha256:abc"})
    assert "sha256: and 64 hexadecimal digits" in str(wrong.context["adminform"].form.errors["digest"])
    assert client.post(add, {**typed, "name": "PyTorch"}).status_code == 302
    found = Image.objects.get()
    assert (found.digest, found.min_cuda, found.version) == (DIGEST, "12.0", "2.9.1")

    twice = client.post(add, {**typed, "name": "PyTorch"})
    assert "already exists" in str(twice.context["adminform"].form.errors["name"])
    changed = client.post(f"/admin/catalog/image/{found.pk}/change/", {**typed, "deprecated_since": "2026-01-31"})
    assert changed.status_code == 302
    found.refresh_from_db()
    assert found.deprecated_since == date(2026, 1, 31)

    client.post("/admin/catalog/image/", {"action": "remove", "_selected_action": found.pk})
    assert not Image.objects.exists()
    assert list(Event.objects.order_by("id").values_list("verb", flat=True)) == [
        "image.put",
        "image.put",
        "image.removed",
    ]
