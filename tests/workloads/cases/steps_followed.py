"""Follows the next steps that the page of a run offers, as a user does."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import User
from workloads.advice.queries import advice_by_workload
from workloads.advice.shown import AdviceView, advice_view
from workloads.core import queries, workload_sql
from workloads.models import Workload
from workloads.status import queries as status_queries


@pytest.fixture
def by_hand(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def help_of(by: Actor, name: str, tenant: str = "team-a") -> AdviceView:
    namespace, team = queries.team(by, tenant)
    rows = status_queries.workload_rows(workload_sql.with_related(Workload.objects.filter(name=name)))
    return advice_view(name, advice_by_workload(by, namespace, team, rows)[name], tenant)


def follow(client: Client, href: str, *, unticked: str = "", **typed: str) -> None:
    """Requests the page of the step and submits its form unchanged, as a user does. `unticked`: name of a checkbox."""
    page = client.get(href.partition("#")[0])
    fields = _Form(page.content.decode()).fields | typed
    if unticked:
        del fields[unticked]
    answer = client.post(href.partition("?")[0].partition("#")[0], fields)
    assert answer.status_code == 302, answer.content.decode()


class _Form(HTMLParser):
    """Collects what a browser would send of the form with the class `cols`."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._inside, self._select, self._area = False, "", ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        if tag == "form":
            self._inside = "cols" in found.get("class", "").split()
        if not self._inside:
            return
        name, value = found.get("name", ""), found.get("value", "on" if found.get("type") == "checkbox" else "")
        is_chosen = found.get("type") not in ("radio", "checkbox") or "checked" in found
        if tag == "input" and name and is_chosen:
            self.fields[name] = value
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and "selected" in found:
            self.fields[self._select] = value
        elif tag == "textarea":
            self._area = name
            self.fields[name] = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.fields[self._area] += data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        if tag == "select":
            self._select = ""
        if tag == "textarea":
            self._area = ""
