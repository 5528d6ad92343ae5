"""Every element of a template that sends a POST, found in the templates themselves and recognised on the pages.

`MarkingLoader` loads the templates with a mark in each such element. So a page that is rendered says from which
places of which templates its forms are, and a place that no page of a test renders is known by name.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from django.template import Origin
from django.template.loaders.filesystem import Loader

from tests.support.source import ROOT

# A tag, with the tags and variables of the template language in it, which may hold ">".
TAG = re.compile(r"<(?:form|button|input|a|div|fieldset|select|textarea)\b(?:\{%.*?%\}|\{\{.*?\}\}|[^>])*?>", re.DOTALL)
SENDS = re.compile(r'\s(?:method="post"|formmethod="post"|hx-(?:post|put|patch|delete)=)')
MARK = "data-marked-form"
# Components with a form whose address the including template gives: each place that includes one is a form of its own.
INCLUDES = re.compile(r'\{% include "components/forms/_(?:sure|confirm)\.html"')
COMPONENTS = ("components/forms/_sure.html", "components/forms/_confirm.html")
HTMX = ("hx-post", "hx-put", "hx-patch", "hx-delete")


def _marked(name: str, text: str) -> str:
    count = 0

    def mark(found: re.Match[str]) -> str:
        nonlocal count
        if not SENDS.search(found[0]):
            return found[0]
        count += 1
        element, rest = re.match(r"(<\w+)(.*)", found[0], re.DOTALL).groups()  # type: ignore[union-attr]
        return f'{element} {MARK}="{name}:{count}"{rest}'

    def mark_include(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"<!--{MARK}={name}:{count}-->{found[0]}"

    return INCLUDES.sub(mark_include, TAG.sub(mark, text))


class MarkingLoader(Loader):
    def get_contents(self, origin: Origin) -> str:
        return _marked(str(origin.template_name), super().get_contents(origin))


def places() -> set[str]:
    """Returns "template:number" of every element that sends a POST."""
    found: set[str] = set()
    for path in (ROOT / "templates").rglob("*.html"):
        marked = _marked(str(path.relative_to(ROOT / "templates")), path.read_text())
        found |= set(re.findall(rf'{MARK}="?([^"> ]+?)(?:"|--)', marked))
    return {place for place in found if not place.startswith(COMPONENTS)}


@dataclass
class Sent:
    """A form or element on a page. `token`: what it sends against forged requests; `actions`: where it goes."""

    place: str
    actions: list[str]
    token: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    is_htmx: bool = False
    # A form whose only button says why it is off cannot be sent.
    is_sendable: bool = False


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Sent] = []
        self.token = ""
        self.open: dict[str, Any] | None = None
        self.of_form: list[Sent] = []
        self.by_id: dict[str, Sent] = {}
        self.select = ""
        self.included = ""
        self.buttons: list[tuple[list[Sent], dict[str, str]]] = []

    def handle_comment(self, data: str) -> None:
        if data.startswith(f"{MARK}="):
            self.included = data.partition("=")[2]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "body" and "hx-headers" in given:
            self.token = json.loads(given["hx-headers"]).get("X-CSRFToken", "")
        if tag == "form":
            self.open, self.of_form = {}, []
        is_htmx = any(name in given for name in HTMX)
        is_post = "post" in (given.get("method", ""), given.get("formmethod", ""))
        # What sends may depend on the state of the page: a mark alone is no form.
        if (place := given.get(MARK)) and (is_htmx or is_post):
            place = self.included if place.startswith(COMPONENTS) else place
            goes = next((given[name] for name in (*HTMX, "action", "formaction") if name in given), "")
            fields = self.open if self.open is not None else {}
            sent = Sent(place, [goes], fields=fields, is_htmx=is_htmx, is_sendable=tag != "form")
            self.found.append(sent)
            if tag == "form":
                self.of_form.append(sent)
                self.by_id[given.get("id", "")] = sent
            elif given.get("name") == "csrfmiddlewaretoken":
                sent.token = given.get("value", "")
        elif (tag == "button" and given.get("type", "submit") == "submit") or given.get("type") == "submit":
            self.buttons.append((self.of_form, given))
        self._field(tag, given)

    def _field(self, tag: str, given: dict[str, str]) -> None:
        name, kind = given.get("name", ""), given.get("type", "text")
        if self.open is None or not name:
            return
        if tag == "select":
            self.select = name
            self.open.setdefault(name, "")
        elif name == "csrfmiddlewaretoken":
            for sent in self.of_form:
                sent.token = given.get("value", "")
        elif tag == "textarea" or (tag == "input" and (kind not in ("checkbox", "radio") or "checked" in given)):
            self.open[name] = given.get("value", "on" if kind == "checkbox" else "")
        elif tag == "button":
            self.open.setdefault(name, given.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.open, self.of_form = None, []


def sent_from(page: str) -> list[Sent]:
    """Returns what a page that was loaded with marks may send. htmx sends the token of the page's body."""
    parser = _Page()
    parser.feed(page)
    for of_form, given in parser.buttons:
        # A button may belong to a form that comes after it.
        for sent in [parser.by_id[given["form"]]] if given.get("form") in parser.by_id else of_form:
            sent.is_sendable = True
            if "formaction" in given:
                sent.actions.append(given["formaction"])
    for sent in parser.found:
        if sent.is_htmx:
            sent.token = parser.token
    return parser.found
