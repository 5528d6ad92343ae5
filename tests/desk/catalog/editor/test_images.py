"""The images in the catalog's editor: list, order, what is saved and refused, which class offers which."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.core.actor import system_actor
from accounts.models import Event, User
from catalog.images import actions as image_actions
from catalog.images.actions import put_image
from catalog.models import GpuClass, Image
from desk.catalog.editor import queries
from desk.catalog.editor.actions import version_of_image
from desk.catalog.file.actions import apply
from desk.catalog.file.queries import export
from tests.support.rows import make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("cluster")]
EDITOR = "/operators/catalog"
IMAGES = f"{EDITOR}/images"


@pytest.fixture
def staff(olga: User) -> Client:
    return make.administrator(Client(), olga)


def image(name: str, **values: Any) -> Image:
    reference = f"registry.example.org/{name}:1"
    return put_image(name=name, by=system_actor("test"), **{"reference": reference, "kind": "notebook", **values})


def sent(one: Image, **changes: Any) -> dict[str, Any]:
    """What a browser sends from the form of the image."""
    names = ("version", "reference", "digest", "contents", "vendor", "min_cuda", "kind")
    shown = {name: getattr(one, name) for name in names}
    return {
        **shown,
        "successor": one.successor_id or "",
        "deprecated_since": "",
        "seen": version_of_image(one),
    } | changes


def order(kind: str = "notebook") -> list[str]:
    return list(Image.objects.filter(kind=kind).values_list("name", flat=True))


def test_images_are_listed_by_kind_in_their_order_in_one_query(staff: Client, a100: GpuClass) -> None:
    image("b", position=1, vendor="nvidia", min_cuda="12.4")
    image("a", position=2, successor=Image.objects.get(name="b"))
    image("c", kind="job")
    with CaptureQueriesContext(connection) as taken:
        found = queries.images_by_kind()
    assert len(taken) == 1
    assert {kind: [one.name for one in rows] for kind, rows in found.items()} == {"notebook": ["b", "a"], "job": ["c"]}
    text = staff.get(EDITOR).text
    assert "NVIDIA, CUDA 12.4" in text
    # The first has no Up, the last no Down, and one alone has neither.
    buttons = re.findall(r'value="(up|down)">\w+<span class="visually-hidden">: (\w)<', text)
    assert buttons == [("down", "b"), ("up", "a")]


def test_an_image_moves_by_one_place_and_the_change_is_recorded(staff: Client, olga: User) -> None:
    a, b, c = (image(name) for name in "abc")
    other = image("other", kind="job")
    before = Event.objects.count()
    assert order() == ["a", "b", "c"]
    assert staff.post(f"{IMAGES}/{c.pk}/move", {"to": "up"})["Location"] == f"{EDITOR}#images"
    assert order() == ["a", "c", "b"]
    assert Event.objects.count() == before + 3, "equal positions before: each gets its own"
    assert staff.post(f"{IMAGES}/{a.pk}/move", {"to": "down"}).status_code == 302
    assert order() == ["c", "a", "b"]
    event = Event.objects.latest("pk")
    assert (event.verb, event.actor_id, event.before, event.after) == (
        "image.put",
        olga.pk,
        {"position": 10},
        {"position": 20},
    )
    assert Event.objects.count() == before + 5
    staff.post(f"{IMAGES}/{c.pk}/move", {"to": "up"})
    staff.post(f"{IMAGES}/{b.pk}/move", {"to": "down"})
    assert (order(), Event.objects.count()) == (["c", "a", "b"], before + 5), "the ends of the list"
    other.refresh_from_db()
    assert other.position == 100, "the list of the other kind is its own"
    assert staff.post(f"{IMAGES}/0/move", {"to": "up"}).status_code == 404


def test_an_image_that_is_removed_while_it_is_moved_is_not_found(
    staff: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = image("a")

    def removed_after_it_was_read(_rows: Any, *, pk: int) -> Image:
        Image.objects.filter(pk=pk).delete()
        return one

    monkeypatch.setattr(image_actions, "get_or_refuse", removed_after_it_was_read)
    assert staff.post(f"{IMAGES}/{one.pk}/move", {"to": "down"}).status_code == 404


def test_a_new_image_is_the_last_of_its_kind(staff: Client) -> None:
    image("a", position=300)
    new = {"name": "b", "reference": "registry.example.org/b:1", "kind": "notebook", "vendor": "amd"}
    assert staff.post(f"{IMAGES}/new", new).status_code == 302
    made = Image.objects.get(name="b")
    assert (made.position, made.vendor, order()) == (310, "amd", ["a", "b"])
    again = staff.post(f"{IMAGES}/new", new)
    assert (again.status_code, again.context["form"].errors.keys()) == (422, {"name"})


def test_an_image_is_edited_and_what_is_refused_stands_beside_its_field(staff: Client) -> None:
    one, other = image("a"), image("b", kind="job")
    path = f"{IMAGES}/{one.pk}"
    before = Event.objects.count()
    assert staff.get(path).status_code == 200
    assert staff.post(path, sent(one)).status_code == 302
    assert Event.objects.count() == before, "sent as it was shown"
    for changes, field in (
        ({"reference": ""}, "reference"),
        ({"digest": "sha256:1"}, "digest"),
        ({"vendor": "nvidia", "min_cuda": "new"}, "min_cuda"),
        ({"min_cuda": "12.4"}, "min_cuda"),
        ({"successor": other.pk}, "successor"),
        ({"vendor": "acme"}, "vendor"),
        ({"name": "c"}, "__all__"),
        ({"seen": "old"}, "__all__"),
    ):
        answer = staff.post(path, sent(one, **changes))
        assert (answer.status_code, [*answer.context["form"].errors]) == (422, [field]), changes
    assert Event.objects.count() == before
    assert staff.post(path, sent(one, contents="NumPy", deprecated_since="2026-11-01")).status_code == 302
    one.refresh_from_db()
    assert (one.contents, str(one.deprecated_since)) == ("NumPy", "2026-11-01")
    assert Event.objects.latest("pk").after == {"contents": "NumPy", "deprecated_since": "2026-11-01"}


def test_an_image_is_removed(staff: Client) -> None:
    one = image("a")
    assert staff.post(f"{IMAGES}/{one.pk}/remove").status_code == 302
    assert not Image.objects.exists()
    assert Event.objects.latest("pk").verb == "image.removed"


def test_the_editor_of_a_class_says_which_images_it_offers(staff: Client, a100: GpuClass) -> None:
    fits, amd, job = image("fits"), image("rocm", vendor="amd"), image("job", kind="job")
    GpuClass.objects.update(kinds=GpuClass.Kinds.NOTEBOOK)
    page = staff.get(f"{EDITOR}/classes/{a100.slug}")
    assert [(one.name, bool(one.refusal)) for one in page.context["images"]] == [("fits", False), ("rocm", True)]
    assert f'href="{IMAGES}/{fits.pk}"' in page.text
    assert f'href="{IMAGES}/{amd.pk}"' in page.text
    assert f'href="{IMAGES}/{job.pk}"' not in page.text
    assert "ROCm images do not run on NVIDIA GPUs" in page.text
    assert staff.get(f"{EDITOR}/new").context["images"] is None


def test_what_the_editor_wrote_is_what_the_catalog_as_a_file_has(staff: Client) -> None:
    for name in "abc":
        image(name)
    staff.post(f"{IMAGES}/{Image.objects.get(name='c').pk}/move", {"to": "up"})
    text = export()
    assert apply(text, prune=True, dry_run=False, by=system_actor("test")).lines == []
    Image.objects.update(position=100)
    apply(text, prune=True, dry_run=False, by=system_actor("test"))
    assert order() == ["a", "c", "b"]
    assert export() == text


def test_it_is_for_who_may_edit_the_catalog_with_a_second_factor(dana: User, olga: User) -> None:
    one = image("a")
    for client in (make.administrator(Client(), dana), Client()):
        for path in (f"{IMAGES}/new", f"{IMAGES}/{one.pk}"):
            assert client.get(path).status_code in (404, 302)
        for path in (f"{IMAGES}/{one.pk}/remove", f"{IMAGES}/{one.pk}/move", f"{IMAGES}/{one.pk}"):
            client.post(path, sent(one, contents="x"))
    plain = Client()
    plain.force_login(olga)
    assert "second factor" in plain.post(f"{IMAGES}/{one.pk}/remove", follow=True).text
    one.refresh_from_db()
    assert one.contents == ""
