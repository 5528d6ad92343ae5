"""JupyterHub: the answer of `GET /hub/api/users?include_stopped_servers`: users, groups and named servers. Pure.

A group becomes a team. A home is the claim that KubeSpawner mounted: it is named, and nothing is done with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenants.onboarding.imports.sources.builder import PlanBuilder, address, json_of, records, text_at
from tenants.onboarding.imports.sources.claim_names import claim_name
from tenants.onboarding.imports.types import ImportOptions, ImportPlan, Person

Record = Mapping[str, Any]


def read(data: bytes, options: ImportOptions) -> ImportPlan:
    """Raises Refused: too_large, not_json, bad_value: errors of the whole file."""
    users = records(json_of(data), "The answer of JupyterHub")
    builder = PlanBuilder(options)
    slugs: dict[str, str] = {}
    for user in users:
        for group in _groups(user):
            if group not in slugs:
                slugs[group] = builder.team(f"group {group}", key=group, name=group, owners=())
    for user in users:
        _add_member(builder, user, slugs)
    for user in users:
        _add_homes(builder, user)
    return builder.plan("JupyterHub")


def _add_member(builder: PlanBuilder, user: Record, slugs: Mapping[str, str]) -> None:
    name, options = text_at(user, "name"), builder.options
    place = f"user {name}"
    email = name if "@" in name else f"{name}@{options.domain}" if options.domain and name else ""
    teams = [slug for group in _groups(user) if (slug := slugs[group])]
    if not _groups(user) and options.into:
        teams = [options.into]
    if not email:
        text = "The name is not an email address. Say how addresses end: --domain example.org."
        builder.refused(place, "member", name, "email", text)
    elif not teams and _groups(user):
        builder.left_out(place, "member", name, "The groups of this user are not imported.")
    elif not teams:
        text = "The user is in no group. Name a team for users without a group: --into TEAM."
        builder.refused(place, "member", name, "groups", text)
    else:
        for team in teams:
            builder.member(place, team=team, person=Person(address(email)), role="member")


def _add_homes(builder: PlanBuilder, user: Record) -> None:
    name, servers, options = text_at(user, "name"), user.get("servers"), builder.options
    for server, facts in sorted(servers.items()) if isinstance(servers, dict) else ():
        state = facts.get("state") if isinstance(facts, dict) else None
        stored = state if isinstance(state, dict) else {}
        recorded = text_at(stored, "pvc_name")
        claim = recorded or claim_name(options.claim_template, name, server, scheme=options.slug_scheme)
        namespace = text_at(stored, "namespace") or options.namespace
        where = f"{namespace or 'NAMESPACE'}/{claim or '?'}"
        text = f"{where}. A claim can be mounted only in its own namespace: copy the files that the "
        text += "user needs into a volume of the team."
        if not claim:
            text = f"The name of its claim is unknown: the template {options.claim_template} needs more than the names."
        elif not recorded:
            text += " The name is computed from the template; check it with kubectl get pvc."
        if claim and not namespace:
            text += " The namespace is that of JupyterHub: --namespace names it here."
        builder.kept(f"user {name}", "home", f"{name}/{server}" if server else name, text)


def _groups(user: Record) -> list[str]:
    found = user.get("groups")
    return [" ".join(one.split()) for one in found if isinstance(one, str)] if isinstance(found, list) else []
