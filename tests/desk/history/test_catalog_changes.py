"""The log of catalog changes: plain sentences for every user, and nothing about classes that the user may not see."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.classes import actions
from catalog.file import change_log
from catalog.images import actions as image_actions
from catalog.models import GpuClass
from tenants.class_access import actions as class_access_actions
from tenants.models import Tenant


def lines(who: User, query: str = "") -> list[str]:
    client = Client()
    client.force_login(who)
    page = client.get(f"/catalog/changes{query}").content.decode()
    found = re.findall(r"<li><time.*?</li>", page, re.DOTALL)
    texts = [unescape(re.sub(r"<[^>]+>", " ", line.partition("</time>")[2])) for line in found]
    return [" ".join(text.split()).replace(" .", ".") for text in texts]


@pytest.fixture
def by_olga(olga: User) -> Actor:
    return Actor(olga, via="page")


def test_changes_are_plain_sentences_with_before_and_after_newest_first(
    a100: GpuClass, alice: User, by_olga: Actor
) -> None:
    actions.edit_class(a100.pk, borrowing_limit=2, visibility="everyone", by=by_olga)
    until = timezone.now() + timedelta(hours=1)
    actions.hold_class(a100.pk, reason="a driver update", until=until, by=by_olga)
    actions.hold_class(a100.pk, reason="a longer update", until=None, by=by_olga)
    actions.release_class(a100.pk, by=by_olga)
    actions.retire_class(a100.pk, successor="", message="Too old", runs_until=None, by=by_olga)
    found = lines(alice)
    assert found[0] == f"Olga started to retire {a100.name}. Message: Too old"
    assert found[1] == f"Olga resumed scheduling of {a100.name}."
    assert found[2].startswith(f"Olga changed the scheduling pause of {a100.name}.")
    assert "Reason: a driver update → became a longer update" in found[2]
    assert found[3].startswith(f"Olga paused scheduling of {a100.name}. ")
    assert "Expected to resume: " in found[3]
    assert found[4] == f"Olga changed {a100.name}. Borrowing limit per team: 0 → became 2"
    assert len(found) == 5


def test_nobody_reads_of_classes_that_they_may_not_know_of_nor_of_teams(
    a100: GpuClass, team_a: Tenant, alice: User, charlie: User, dana: User, by_olga: Actor
) -> None:
    secret = actions.create_class(
        slug="secret", name="B300 pilot", resource="nvidia.com/gpu", node_labels={"a": "b"}, visibility="named",
        cluster=a100.cluster, by=by_olga,
    )  # fmt: skip
    assert lines(alice) == lines(charlie) == []
    assert lines(dana) == ["Olga created B300 pilot."], "a draft is the operators' own"
    actions.activate(secret.pk, by=by_olga)
    class_access_actions.allow_team(secret.pk, tenant=team_a.slug, by=by_olga)
    actions.retire_class(a100.pk, successor="secret", message="", runs_until=None, by=by_olga)
    assert lines(alice) == [
        f"Olga started to retire {a100.name}. Successor: secret",
        "Olga opened B300 pilot.",
        "Olga created B300 pilot.",
    ]
    assert lines(charlie) == [f"Olga started to retire {a100.name}. Successor: another class"]
    actions.move_class(secret.pk, to="retiring", by=by_olga)
    actions.move_class(secret.pk, to="retired", by=by_olga)
    assert lines(alice)[0] == "Olga closed B300 pilot."
    assert not any(team_a.name in line or team_a.slug in line for line in lines(dana))


def test_images_are_in_the_log(a100: GpuClass, alice: User, by_olga: Actor) -> None:
    made = image_actions.put_image(name="Plain", reference="example.org/plain:1", by=by_olga)
    image_actions.put_image(name="Plain", reference="example.org/plain:2", by=by_olga)
    image_actions.remove_image(made.pk, by=by_olga)
    removed, changed, offered = lines(alice)
    assert removed.startswith("Olga removed the image Plain.")
    assert "example.org/plain:1 → became example.org/plain:2" in changed
    assert offered.startswith("Olga added the image Plain.")


def test_a_long_log_is_paged_and_costs_the_same_whatever_its_length(
    a100: GpuClass, alice: User, by_olga: Actor
) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as seen:
            lines(alice)
        return len(seen)

    actions.edit_class(a100.pk, borrowing_limit=1, by=by_olga)
    few = asked()
    for number in range(60):
        actions.edit_class(a100.pk, borrowing_limit=number + 2, by=by_olga)
    assert asked() == few
    assert len(lines(alice)) == 50
    client = Client()
    client.force_login(alice)
    page = client.get("/catalog/changes").content.decode()
    cursor = re.search(r"\?cursor=[^\"&]+", page)
    assert cursor is not None
    assert len(lines(alice, unescape(cursor[0]))) == 11


def test_strangers_of_the_site_are_sent_to_the_door(client: Client, a100: GpuClass) -> None:
    assert client.get("/catalog/changes").status_code == 302


@pytest.mark.parametrize(
    ("kind", "before", "after", "text"),
    [
        ("class.moved", {"life_cycle": "draft"}, {"life_cycle": "active"}, "opened"),
        ("class.moved", {"life_cycle": "retired"}, {"life_cycle": "active"}, "reopened"),
        ("class.moved", {"retiring_message": "a"}, {"retiring_message": "b"}, "changed the retirement of"),
        ("image.put", {}, {"reference": "a"}, "added the image"),
    ],
)
def test_verbs(kind: str, before: dict[str, str], after: dict[str, str], text: str) -> None:
    assert change_log.change_verb(kind, before, after) == text


def test_values_are_words() -> None:
    before = {"visibility": "everyone", "promise_limit": 4, "tolerations": [{"key": "a", "operator": "Exists"}]}
    after = {"visibility": "named", "promise_limit": None, "tolerations": [], "terms": "x" * 300}
    found = {
        one.name: (one.before, one.after) for one in change_log.changed_fields("class.edited", before, after, known=())
    }
    assert found == {
        "visibility": ("everyone", "named teams"),
        "allocation limit": ("4", "nothing"),
        "tolerations": ("key=a, operator=Exists", "nothing"),
        "terms": ("", "x" * 160 + "…"),
    }
