"""Whoever loses something by a click is asked first: in a dialog or a folded part, which both work without script."""

from __future__ import annotations

import re

import pytest

from tests.support.source import ROOT

# Loses something: these actions are reached only through a part that says what.
LOSES = (
    "workload-stop", "workload-delete", "member-remove", "invitation-revoke", "token-revoke", "team-token-revoke",
    "person-suspend", "person-class-revoke", "person-second-factor-drop", "delegation-end", "secret-delete",
    "registry-delete", "prefix-end", "volume-delete", "request-withdraw", "maintenance-release",
    "node-measurement-withdraw",
)  # fmt: skip
# Red buttons in the open, and what stands beside them instead.
ELSEWHERE = {
    "accounts/credentials/account.html": "ends a session, as the text below says; the second factor needs a code",
    "desk/inbox/inbox.html": "denies the selected requests; needs a comment",
    "desk/catalog/editor/class.html": "retires a class; needs a message to its users",
    "tenants/onboarding/team_requests/team_request.html": "denies a request for a team; needs a comment",
    "tenants/requests/decisions/request.html": "denies lines; needs a comment",
}
ASKED = re.compile(r"<(dialog|details)\b.*?</\1>", re.DOTALL)
SUBMITS = re.compile(r'<button class="btn[^"]*btn-danger[^"]*" type="submit"')


def templates() -> dict[str, str]:
    folder = ROOT / "templates"
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.html"))}


def test_a_red_button_stands_in_a_part_that_says_what_is_lost() -> None:
    in_the_open = {name for name, text in templates().items() if SUBMITS.search(ASKED.sub("", text))}
    assert in_the_open == set(ELSEWHERE)


@pytest.mark.parametrize("action", LOSES)
def test_what_loses_something_asks_first(action: str) -> None:
    """The action is in a dialog or a folded part, or is given to one of the components with a dialog."""
    uses = [text for text in templates().values() if re.search(rf"url '{action}'", text)]
    assert uses
    for text in uses:
        named = re.search(rf"url '{action}'[^%]* as (\w+) %", text)
        if named:
            asks = re.findall(r"_(?:sure|confirm)\.html[^%]*action=(\w+)", text)
            assert named[1] in asks
        else:
            assert not re.search(rf"url '{action}'", ASKED.sub("", text))
