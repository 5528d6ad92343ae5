"""Starts the real issuer, and visits it as a browser without script does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import requests

from tests.support.identity.issuer import CLIENT, SECRET
from tests.support.identity.provider import Person, Told

ROOT = Path(__file__).parents[3]
PASSWORD = "the issuer's own passphrase"


@dataclass
class Provider:
    url: str
    folder: Path

    def put_in(self, email: str, *groups: str) -> None:
        said = self.folder / "groups.json"
        known = json.loads(said.read_text())
        said.write_text(json.dumps(known | {email: groups}))


@contextmanager
def providing(folder: Path, *, back: list[str], people: list[Person]) -> Iterator[Provider]:
    told: Told = {"client": CLIENT, "secret": SECRET, "back": back, "people": people}
    (folder / "groups.json").write_text("{}")
    process = subprocess.Popen(
        [sys.executable, "-c", "from tests.support.identity.provider import main; main()"],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.support.identity.provider",
            "GIVEN": json.dumps(told),
            "FOLDER": str(folder),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        assert port, "the issuer did not start"
        yield Provider(f"http://127.0.0.1:{port}", folder)
    finally:
        process.stdin.close()
        process.wait(timeout=10)
        process.stdout.close()


class Form(HTMLParser):
    """The first form of a page: its fields with their values, and its first button."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action, self.fields, self._is_in = "", list[tuple[str, str]](), False
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        had = {name: value or "" for name, value in attributes}
        if tag == "form" and had.get("method", "").lower() == "post" and not self.fields:
            self._is_in, self.action = True, had.get("action", "")
        is_off = had.get("type") in ("checkbox", "radio") and "checked" not in had
        is_other_button = tag == "button" and had.get("name") in dict(self.fields)
        if self._is_in and tag in ("input", "button") and "name" in had and not is_off and not is_other_button:
            self.fields.append((had["name"], had.get("value", "on")))

    def handle_endtag(self, tag: str) -> None:
        self._is_in = self._is_in and tag != "form"


def visited(there: str, *, until: str, email: str, password: str = PASSWORD) -> str:
    """Signs in at the issuer, consents, and returns the portal's address that the issuer redirects to."""
    with requests.Session() as browser:
        browser.trust_env = False
        answer = browser.get(there, allow_redirects=False)
        for _step in range(12):
            if answer.is_redirect:
                there = urljoin(answer.url, answer.headers["Location"])
                if there.startswith(until):
                    return there
                answer = browser.get(there, allow_redirects=False)
                continue
            answer.raise_for_status()
            form = Form(answer.text)
            typed = {"login": email, "password": password}
            sent = [(name, typed.get(name, value)) for name, value in form.fields]
            headers = {"Referer": answer.url}
            answer = browser.post(
                urljoin(answer.url, form.action or answer.url), data=sent, headers=headers, allow_redirects=False
            )
    raise AssertionError(f"the issuer led nowhere: {answer.status_code} {answer.url} {answer.text[-2000:]}")
