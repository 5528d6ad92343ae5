"""A text that would run in another user's browser if it were not escaped, and checks that it did not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

# A quote, a tag, a script, a template, a formula; characters that reverse the text direction, and an invisible one.
LONG = "\"'><img src=x data-marked onerror=window.marked=1><script>window.marked=1</script>{{7*7}}\u202e\u200b=1+1"
MIDDLE, SHORT = "\"'><script data-marked>marked()</script>", "\"'><i data-marked>"
LINES = f"{LONG}\r\nBcc: marked@example.org\r\n\r\n<b data-marked>"
CANDIDATES = (LINES, LONG, MIDDLE, SHORT)
RAW = re.compile(rb"<(?:(?:img src=x|script|i|b) data-marked|script>window\.marked)|marked49")


class _Own(HTMLParser):
    """Elements and attributes of the payload that became markup in place of text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if any(name == "data-marked" or name.startswith("on") for name, _value in attrs):
            self.found.append(self.get_starttag_text() or tag)


def unescaped(body: bytes) -> list[str]:
    parser = _Own()
    parser.feed(body.decode())
    return [*parser.found, *(found.group().decode() for found in RAW.finditer(body))]


@dataclass
class Form:
    action: str
    fields: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []
        self.open: Form | None = None
        self.select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name = given.get("name", "")
        if tag == "form" and given.get("method", "").lower() == "post":
            self.open = Form(given.get("action", ""))
            self.found.append(self.open)
        if self.open is None:
            return
        kind = given.get("type", "text")
        if tag == "select":
            self.select = name
        elif tag == "option" and self.select and ("selected" in given or self.select not in self.open.fields):
            self.open.fields[self.select] = given.get("value", "")
        elif tag == "textarea" or (tag == "input" and kind in ("text", "email", "search", "password", "url")):
            self.open.fields[name] = given.get("value", "")
            self.open.texts.append(name)
        elif (tag == "input" and kind not in ("checkbox", "radio")) or (
            kind in ("checkbox", "radio") and "checked" in given
        ):
            self.open.fields[name] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.open = None
        if tag == "select":
            self.select = ""


def forms_of(page: str) -> Iterator[Form]:
    parser = _Forms()
    parser.feed(page)
    yield from (one for one in parser.found if one.texts)
