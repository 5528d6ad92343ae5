"""What operators read of the API → tables and sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table

from gpu_cli.formatting import UNKNOWN, Json, plain, table, value, when


def _age(found: Json) -> str:
    """How old the data of the cluster is, where that matters; "" while it is current."""
    if found["is_current"]:
        return ""
    return (
        f"No current updates from the cluster. Last update: {when(found['as_of'])}. {plain(found['problem'])}".strip()
    )


def _with_age(found: Json, *parts: RenderableType) -> Group:
    age = _age(found)
    return Group(*([age] if age else []), *parts)


def _named(rows: Iterable[tuple[str, object]]) -> str:
    return "\n".join(f"  {name}: {value(told)}" for name, told in rows if told not in (None, ""))


# ---- health --------------------------------------------------------------------------------------------------------


def health(found: Json) -> Group:
    """The verdict, then each finding with its remedy."""
    parts = [plain(found["verdict"])]
    parts += [
        f"{plain(one['about'])} ({plain(one['code'])}): {plain(one['message'])}\n  → {plain(one['remedy'])}"
        for one in found["findings"]
    ]
    return _with_age(found, *parts)


# ---- nodes, queue, teams -------------------------------------------------------------------------------------------


def nodes(found: Json) -> Group:
    headings = ["NODE", "PRODUCT", "STATE", "RESOURCE", ">ALLOCATABLE", ">USED", ">UNHEALTHY", "NOTE"]
    shown = table(headings, (row for one in found["items"] for row in _node_rows(one)))
    return _with_age(found, shown, *([plain(found["faults"])] if found["faults"] else []))


def _node_rows(one: Json) -> Iterator[list[object]]:
    """A row for each resource; what is about the whole node is in the first."""
    state = "ready" if one["is_ready"] else "not ready"
    state = state if one["is_schedulable"] else f"{state}, cordoned"
    note = "; ".join(filter(None, [one["cordon"], *one["faults"]]))
    names = ("resource", "allocatable", "used", "unhealthy")
    lines = [[device[name] for name in names] for device in one["devices"]] or [[None, None, None, None]]
    for number, line in enumerate(lines):
        yield [one["name"], one["product"], state, *line, note if number == 0 else None]


def queue(found: Json) -> Group:
    """The paused classes, then every run."""
    held = [plain(one["hold"]) for one in found["classes"] if one["hold"]]
    headings = ["CLASS", "TEAM", ">PLACE", "WORKLOAD", ">RUN", ">UNITS", "PRIORITY", "SINCE", "REASON", "MESSAGE"]
    names = ("gpu_class", "team", "place", "workload", "run", "units", "goes_as")
    rows = ([*(one[name] for name in names), when(one["waits_since"]), one["reason"], one["sentence"]]
            for one in found["items"])  # fmt: skip
    return _with_age(found, *held, table(headings, rows))


def teams(found: Json) -> Group:
    headings = ["TEAM", "STATE", "HOLDS (USED/QUOTA)", ">QUEUED", "LAST ACTIVITY", "NEXT EXPIRY", "OWNERS", "PROBLEM"]
    return _with_age(found, table(headings, map(_team_row, found["items"])))


def _team_row(one: Json) -> list[object]:
    holds = ", ".join(
        f"{use['gpu_class']} {UNKNOWN if use['used'] is None else use['used']}/{use['quota']}" for use in one["quota"]
    )
    owners = ", ".join(owner["email"] for owner in one["owners"])
    activity = "busy now" if one["is_busy"] else when(one["last_activity_at"])
    expiry = when(one["next_expiry_at"])
    return [one["team"], one["state"], holds, one["queued_runs"], activity, expiry, owners, one["problem"]]


def observe_only(found: Json) -> Group:
    return Group(*_observed(found))


def _observed(found: Json) -> Iterator[RenderableType]:
    if found["observe_only"]:
        by = f" by {plain(found['by'])}" if found["by"] else ""
        yield f"The portal only observes the cluster since {when(found['since'])}{by}. {found['waiting']} writes wait."
    else:
        yield f"The portal writes to the cluster. {found['waiting']} writes wait."
    if found["namespaces"] is None:
        yield "Devices that others use are unknown: there are no current updates of pods."
    elif found["namespaces"]:
        rows = ([one["name"], one["pods"], " ".join(f"{name}={units}" for name, units in one["devices"].items())]
                for one in found["namespaces"])  # fmt: skip
        yield table(["NAMESPACE", ">PODS", "DEVICES OF OTHERS"], rows)


# ---- adoptions and announcements -----------------------------------------------------------------------------------


def adoptions(found: Json) -> Table:
    names = ("team", "namespace", "state", "proposed_by")
    rows = ([*(one[name] for name in names), when(one["proposed_at"]), len(one["losses"])] for one in found["items"])
    return table(["TEAM", "NAMESPACE", "STATE", "PROPOSED BY", "PROPOSED AT", ">TO ACCEPT"], rows)


def adoption(found: Json) -> Group:
    """One with its steps, the label that its namespace needs, and what becomes of each object."""
    steps = [
        ("proposed", f"{when(found['proposed_at'])} by {found['proposed_by']}"),
        ("read", found["read_at"] and when(found["read_at"])),
        ("accepted", found["accepted_at"] and f"{when(found['accepted_at'])} by {found['accepted_by']}"),
        ("adopted", found["adopted_at"] and when(found["adopted_at"])),
        ("undone", found["undone_at"] and when(found["undone_at"])),
        ("value of the label gpu-portal/adopt of the namespace", found["consent"]),
    ]
    head = f"Adoption of {plain(found['namespace'])} by team {plain(found['team'])}: {plain(found['state'])}."
    names = ("effect", "kind", "name", "message")
    rows = [[one[name] for name in names] for one in found["findings"]]
    parts: list[RenderableType] = [f"{head}\n{_named(steps)}"]
    if rows:
        parts.append(table(["EFFECT", "KIND", "NAME", "WHAT BECOMES OF IT"], rows))
    if found["losses"]:
        parts.append(f"The owner has to accept {len(found['losses'])} of these.")
    return Group(*parts)


def announcements(found: Json) -> Table:
    headings = ["ANNOUNCEMENT", "STATE", "SEVERITY", "AUDIENCE", "FROM", "UNTIL", "TITLE"]
    return table(headings, map(_announcement_row, found["items"]))


def _announcement_row(one: Json) -> list[object]:
    times = [when(one["starts_at"]), when(one["ends_at"])]
    return [one["id"], one["state"], one["severity"], _audience(one), *times, one["title"]]


def _audience(one: Json) -> str:
    names = ", ".join(one["classes"] or one["teams"])
    return f"{one['audience']}: {names}" if names else str(one["audience"])


def announcement(found: Json) -> str:
    told = f"{found['acknowledged']} of {found['people']} people" if found["wants_acknowledgement"] else ""
    rows = [
        ("severity", found["severity"]),
        ("audience", f"{_audience(found)} ({found['people']} people now)"),
        ("from", when(found["starts_at"])),
        ("until", when(found["ends_at"])),
        ("published", f"{when(found['created_at'])} by {found['created_by']}"),
        ("withdrawn", found["withdrawn_at"] and when(found["withdrawn_at"])),
        ("acknowledged by", told),
        ("page", found["url"]),
    ]
    head = f"Announcement {found['id']}: {plain(found['title'])} ({found['state']})."
    return f"{head}\n{_named(rows)}\n{plain(found['body'])}"


def own_announcements(found: Json) -> Group:
    """Those for the caller, each with its text, and what to do about classes that are being retired."""
    return Group(*map(_own_announcement, found["items"])) if found["items"] else Group("No announcements.")


def _own_announcement(one: Json) -> str:
    done = f", acknowledged {when(one['acknowledged_at'])}" if one["acknowledged_at"] else ""
    asks = ", to be acknowledged" if one["wants_acknowledgement"] and not done else done
    lines = [f"{one['id']}: {plain(one['title'])} ({one['severity']}, until {when(one['ends_at'])}{asks})"]
    lines += [f"  {line}" for line in plain(one["body"]).splitlines()]
    for retiring in one["retiring"]:
        to = f" Successor: {plain(retiring['successor'])}." if retiring["successor"] else ""
        lines.append(f"  {plain(retiring['gpu_class'])} is being retired. {plain(retiring['advice'])}{to}")
    return "\n".join(lines)
