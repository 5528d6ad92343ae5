from __future__ import annotations

import pytest

from accounts.models import User
from accounts.rest.paging import Page, page_of
from portal.core.errors import Refused
from tests.support.rows import make


@pytest.fixture
def people(db: None) -> list[User]:
    """Two names, three users each, so that the order needs a second column."""
    return [
        User.objects.create(email=f"{name}{number}@example.org".lower(), name=name)
        for name in ("Ann", "Ben")
        for number in range(3)
    ]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("name", "id"), [0, 1, 2, 3, 4, 5]),
        (("-name", "id"), [3, 4, 5, 0, 1, 2]),
        (("name", "-id"), [2, 1, 0, 5, 4, 3]),
        (("-joined_at", "-id"), [5, 4, 3, 2, 1, 0]),
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 3, 6])
def test_pages_cover_every_row_once_in_order(
    people: list[User], keys: tuple[str, ...], expected: list[int], limit: int
) -> None:
    seen: list[User] = []
    cursor = None
    for _ in range(10):
        page: Page[User] = page_of(User.objects.all(), keys=keys, limit=limit, cursor=cursor)
        seen += page.items
        cursor = page.next_cursor
        if cursor is None:
            break

    assert [people.index(person) for person in seen] == expected


def test_a_cursor_of_one_order_is_refused_by_another(people: list[User]) -> None:
    cursor = page_of(User.objects.all(), keys=("name", "id"), limit=2).next_cursor

    with pytest.raises(Refused, match="does not belong to this list"):
        page_of(User.objects.all(), keys=("-name", "id"), limit=2, cursor=cursor)


def test_rows_that_go_away_hide_no_others(people: list[User]) -> None:
    first = page_of(User.objects.all(), keys=("id",), limit=2)
    people[1].delete()

    second = page_of(User.objects.all(), keys=("id",), limit=2, cursor=first.next_cursor)

    assert second.items == people[2:4]


def test_an_empty_list_has_one_empty_page(db: None) -> None:
    assert page_of(User.objects.all()) == Page([], None)
    make.user("Alice")
    assert page_of(User.objects.all(), limit=1).next_cursor is None
