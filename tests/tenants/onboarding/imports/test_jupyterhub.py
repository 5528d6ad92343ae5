"""Users of JupyterHub as a plan, and the claims of their homes. The answer is written as its REST API describes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tenants.onboarding.imports.sources import jupyterhub
from tenants.onboarding.imports.sources.claim_names import claim_name
from tenants.onboarding.imports.types import (
    ImportedMember,
    ImportedTeam,
    ImportOptions,
    Outcome,
    Person,
    SetAside,
)

EXPORT = (Path(__file__).parent / "exports" / "jupyterhub.json").read_bytes()
OPTIONS = ImportOptions(
    ours=[],
    teams={"研究": "research"},
    owner="olga@example.org",
    domain="example.org",
    into="vision-lab",
    namespace="jupyter",
)


def homes(options: ImportOptions) -> dict[str, SetAside]:
    rows = jupyterhub.read(EXPORT, options).rows
    return {row.title: row for row in rows if isinstance(row, SetAside) and row.kind == "home"}


def test_groups_and_users_are_rows() -> None:
    olga, bob = (Person("olga@example.org"),), Person("bob@example.org")
    assert [row for row in jupyterhub.read(EXPORT, OPTIONS).rows if not isinstance(row, SetAside)] == [
        ImportedTeam("group Vision Lab", "vision-lab", "Vision Lab", olga),
        ImportedTeam("group 研究", "research", "研究", olga),
        ImportedMember("user ada@example.org", "vision-lab", Person("ada@example.org"), "member"),
        # An administrator of JupyterHub is no administrator here.
        ImportedMember("user bob", "vision-lab", bob, "member"),
        ImportedMember("user bob", "research", bob, "member"),
        ImportedMember("user eve", "vision-lab", Person("eve@example.org"), "member"),
    ]


def test_a_user_without_address_or_group_is_refused_with_the_way_out() -> None:
    rows = jupyterhub.read(EXPORT, replace(OPTIONS, domain="")).rows
    told = {row.title: row for row in rows if isinstance(row, SetAside) and row.kind == "member"}
    assert {row.outcome for row in told.values()} == {Outcome.REFUSED}
    assert [*told] == ["bob", "eve"]
    assert "--domain example.org" in told["bob"].text
    rows = jupyterhub.read(EXPORT, replace(OPTIONS, into="")).rows
    [eve] = [row for row in rows if isinstance(row, SetAside) and row.kind == "member"]
    assert (eve.title, eve.field) == ("eve", "groups")
    assert "--into TEAM" in eve.text


def test_a_home_is_named_and_kept_where_it_is() -> None:
    found = homes(OPTIONS)
    assert [*found] == ["ada@example.org", "ada@example.org/big-model"]
    assert {row.outcome for row in found.values()} == {Outcome.KEPT}
    # What KubeSpawner stored is true whatever the template says now.
    stored = found["ada@example.org"].text
    assert stored.startswith("hub/claim-ada-40example-2eorg. A claim can be mounted only in its own")
    assert "computed" not in stored
    computed = found["ada@example.org/big-model"].text
    assert computed.startswith("jupyter/claim-ada-example-org---cfe00dde--big-model.")
    assert "computed from the template; check it with kubectl get pvc." in computed


def test_what_is_unknown_of_a_home_is_said() -> None:
    nowhere = homes(replace(OPTIONS, namespace=""))["ada@example.org/big-model"].text
    assert nowhere.startswith("NAMESPACE/claim-")
    assert "--namespace names it here." in nowhere
    numbered = homes(replace(OPTIONS, claim_template="claim-{userid}"))["ada@example.org/big-model"].text
    assert numbered == "The name of its claim is unknown: the template claim-{userid} needs more than the names."


def test_no_token_is_in_the_plan() -> None:
    assert "not-to-be-read" not in repr(jupyterhub.read(EXPORT, OPTIONS))
    assert b"not-to-be-read" in EXPORT


# As computed by KubeSpawner's own functions (kubespawner/slugs.py, version 7).
@pytest.mark.parametrize(
    ("user", "server", "safe", "escaped"),
    [
        ("ada", "", "ada", "ada"),
        ("ada", "gpu", "ada--gpu", "ada--gpu"),
        ("ada@example.org", "", "ada-example-org---cfe00dde", "ada-40example-2eorg"),
        (
            "ada@example.org",
            "My Server",
            "ada-example-org---cfe00dde--my-server---c2d9a82f",
            "ada-40example-2eorg---4dy-20-53erver",
        ),
        ("jürgen", "", "j-rgen---19b720a9", "j-c3-bcrgen"),
        ("2fast", "", "x-2fast---323a2d31", "2fast"),
        ("a" * 60, "", "aaaaaaaaaaaaaaaaa--x---dc276c9a", "a" * 60),
        ("a--b", "", "a-b---90827a2e", "a-2d-2db"),
        ("研究", "", "x---4ff0f1dd", "-e7-a0-94-e7-a9-b6"),
        ("x-y", "big-model", "x-y--big-model", "x-2dy--big-2dmodel"),
        ("A", "", "a---559aead0", "-41"),
    ],
)
def test_claims_are_named_as_kubespawner_names_them(user: str, server: str, safe: str, escaped: str) -> None:
    assert claim_name("claim-{user_server}", user, server, scheme="safe") == f"claim-{safe}"
    assert claim_name("claim-{user_server}", user, server, scheme="escape") == f"claim-{escaped}"


def test_other_templates() -> None:
    assert claim_name("claim-{username}--{servername}", "ada", "", scheme="escape") == "claim-ada"
    assert claim_name("claim-{username}--{servername}", "a.b", "x", scheme="escape") == "claim-a-2eb--x"
    assert claim_name("{unescaped_username}-{escaped_servername}-", "ada", "", scheme="safe") == "ada--"
    assert claim_name("claim-{username.__class__}", "ada", "", scheme="safe") == ""
