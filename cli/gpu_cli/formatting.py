"""API responses → tables and sentences. Pure functions: they read no clock and print nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

Json = Mapping[str, Any]
UNKNOWN = "–"
CANNOT_START = "Cannot start with this configuration."
# Names and sentences come from other people. Their control characters are replaced: these could move the cursor or
# change the direction of the text.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def value(of: object) -> str:
    """Shows null and "" as a dash. null means unknown, never 0."""
    return UNKNOWN if of is None or of == "" else plain(str(of))


def when(text: str | None) -> str:
    """Shows a time of the API, which is in UTC, to the minute, as on the pages."""
    if not text:
        return UNKNOWN
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M UTC")


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A heading that starts with > belongs to a column of numbers, which is aligned right."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        is_number = heading.startswith(">")
        made.add_column(heading.removeprefix(">"), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        made.add_row(*map(value, row))
    return made


# ---- classes, capacity, quota --------------------------------------------------------------------------------------


def classes(found: Json) -> Table:
    headings = ["CLASS", "NAME", "UNIT", ">FREE", ">ALLOCATABLE", ">MEMORY GIB", "WORKLOADS", "NOTE"]
    return table(headings, map(_class_row, found["items"]))


def _class_row(one: Json) -> list[object]:
    memory = None if one["memory_mib"] is None else f"{one['memory_mib'] / 1024:g}"
    note = one["held"]["message"] if one["held"] else one["retirement"] or one["summary"]
    free, allocatable = one["capacity"]["free"], one["capacity"]["allocatable"]
    return [one["slug"], one["name"], one["unit"], free, allocatable, memory, one["kinds"], note]


def capacity(found: Json) -> Table:
    names = ("allocatable", "promised", "used", "queued", "borrowed", "free", "most_on_one_node")
    headings = ["CLASS", "UNIT", ">ALLOCATABLE", ">ALLOCATED TO TEAMS", ">USED", ">QUEUED", ">BORROWED", ">FREE"]
    headings += [">FREE ON ONE NODE", "LAST UPDATED"]
    rows = ([one["slug"], one["unit"], *(one[name] for name in names), _as_of(one)] for one in found["items"])
    return table(headings, rows)


def _as_of(one: Json) -> str:
    return when(one["as_of"]) if one["is_current"] else f"{when(one['as_of'])}: {one['problem']}"


def quota(found: Json) -> Table:
    headings = ["CLASS", "UNIT", ">QUOTA", ">USED", ">BORROWED", ">LENT", ">QUEUED", "EXPIRES"]
    rows = (
        [one["gpu_class"], one["unit"], one["granted"], one["used"], one["borrowed"], _lent(one["lent"]), one["queued"],
         when(one["ends_at"])]
        for one in found["holdings"]
    )  # fmt: skip
    return table(headings, rows)


def _lent(lent: Json | None) -> object:
    if lent is None:
        return None
    return lent["most"] if lent["least"] == lent["most"] else f"{lent['least']} to {lent['most']}"


def usage(found: Json) -> Table:
    headings = ["PERSON", "CLASS", "PRIORITY", ">UNIT-HOURS", ">GPU-HOURS", ">COST", ">IDLE COST", "NOTE"]
    figures = ("person", "gpu_class", "priority", "unit_hours", "gpu_hours", "cost")
    rows = [[*(one[name] for name in figures), _idle(one), _exactness(one)] for one in found["lines"]]
    total = found["totals"]["all"]
    name = f"Total {found['month']}"
    ending = [name, None, None, None, total["gpu_hours"], total["cost"], _idle(total), _exactness(total)]
    return table(headings, [*rows, ending])


def _idle(one: Json) -> str:
    return str(one["idle_cost"]) if float(one["measured_cost"]) else "not measured"


def _exactness(one: Json) -> str:
    return "" if one["is_exact"] else "includes times that are not exact"


def budget(found: Json) -> Table:
    headings = [">BUDGET", ">USED", ">FORECAST", "AT 100%", "NOTE"]
    if found["amount"] is None:
        return table(headings, [])
    used = "not measured" if found["cost"] is None else f"{found['cost']} ({found['percent']}%)"
    note = found["refusal"] or found["forecast_basis"]
    return table(headings, [[found["amount"], used, found["forecast"] or "unknown", found["at_limit"], note]])


def idle(found: Json) -> Table:
    headings = [
        "TEAM",
        "WORKLOAD",
        "PERSON",
        "CLASS",
        ">UNITS",
        "IDLE SINCE",
        ">MEMORY GIB",
        ">COST",
        ">PER HOUR",
        "NOTE",
    ]
    return table(headings, map(_idle_row, found["items"]))


def _idle_row(one: Json) -> list[object]:
    memory = None if one["memory_mib"] is None else f"{one['memory_mib'] / 1024:.1f}"
    stops = f"stops {when(one['stops_at'])}" if one["stops_at"] else ""
    kept = (
        f"kept until {when(one['kept_until'])} by {one['kept_by']}: {one['kept_reason']}" if one["kept_until"] else ""
    )
    names = [one[name] for name in ("team", "workload", "person", "gpu_class", "units")]
    return [*names, when(one["idle_since"]), memory, one["cost_since"], one["cost_per_hour"], stops or kept]


def faults(found: Json) -> Table:
    return table(["SINCE", "STATE", "NODE", "GPU", "FAULT", "RUNS"], map(_fault_row, found["items"]))


def _fault_row(one: Json) -> list[object]:
    runs = ", ".join(f"{run['team']}/{run['workload']}" for run in one["runs"])
    return [when(one["first_seen"]), one["state"], one["node"], one["gpu"], one["title"], runs]


# ---- requests ------------------------------------------------------------------------------------------------------


def requests(found: Json) -> Table:
    """One row for each line of a request, because lines are decided. An inbox also has `group` and reasons."""
    is_inbox = any("group" in one for one in found["items"])
    headings = ["REQUEST", "TEAM", "LINE", "CLASS", "KIND", ">UNITS", "STARTS", "EXPIRES", "STATE", "REQUESTED BY"]
    headings += ["JUSTIFICATION", "GROUP", "REASON"] if is_inbox else []
    rows = []
    for one in found["items"]:
        ending = [one["justification"], one["group"], " ".join(one["reasons"])] if is_inbox else []
        rows += [[one["id"], one["team"], *_line_row(line), one["filed_by"], *ending] for line in one["lines"]]
    return table(headings, rows)


def _line_row(line: Json) -> list[object]:
    stage = "asked" if line["decided_units"] is None else "decided"
    days = (when(line[f"{stage}_from"])[:10], when(line[f"{stage}_until"])[:10])
    return [line["id"], line["gpu_class"], line["kind"], line[f"{stage}_units"], *days, line["state"]]


def request(found: Json) -> str:
    head = f"Request {found['id']} of team {value(found['team'])}: {found['state']}."
    lines = [
        f"  line {line['id']}: {value(line['gpu_class'])}={line['asked_units']} ({line['kind']}), {line['state']}"
        + (f": {plain(line['reason'])}" if line["reason"] else "")
        for line in found["lines"]
    ]
    return "\n".join([head, *lines])


def request_in_full(found: Json) -> Group:
    """A request with its justification, its comments, and what approvers see of it, if `facts` has it."""
    comments = [
        f"{when(one['at'])} {plain(one['who'])}{' requests information' if one['asks_back'] else ''}: "
        f"{plain(one['text'])}"
        for one in found["comments"]
    ]
    head = [
        request(found),
        f"Submitted {when(found['filed_at'])} by {value(found['filed_by'])}.",
        f"Justification: {value(found['justification'])}",
        *(["Comments:", *comments] if comments else ["No comments."]),
    ]
    return Group("\n".join(head), *(_facts(found["facts"]) if found["facts"] else ()))


# Field of a class → label of its row, as on the page of the request.
FACTS = {
    "held": "Quota of this team",
    "used": "In use by this team",
    "promised": "Allocated to teams",
    "limit": "Allocation limit",
    "allocatable": "Allocatable in the cluster",
    "in_use": "In use by all teams",
    "free": "Free now",
    "peak": "Peak, 30 days",
    "mean": "Mean, 30 days",
    "runs": "Runs, 30 days",
    "runs_waited": "Queued over 1 min",
    "median_wait_s": "Median wait, s",
    "as_of": "Last updated",
}


def _facts(facts: Json) -> Iterable[RenderableType]:
    """Sentences of the group, a table with one column per class, members, earlier lines, and the dry run."""
    if facts["group"]:
        yield "\n".join([f"Group: {facts['group']}.", *map(plain, facts["reasons"])])
    shown = {"as_of": when}
    rows = ([label, *(shown.get(name, value)(one[name]) for one in facts["classes"])] for name, label in FACTS.items())
    yield table(["FACT", *(f">{plain(one['gpu_class'])}" for one in facts["classes"])], rows)
    if facts["members"]:
        hours = (f"{plain(one['name'])} {one['gpu_hours']:g}" for one in facts["members"])
        yield f"GPU-hours in 30 days: {', '.join(hours)}."
    for one in facts["earlier"]:
        given = "" if one["decided_units"] is None else f", {one['decided_units']} granted"
        said = f": {plain(one['reason'])}" if one["reason"] else ""
        line = f"{value(one['gpu_class'])}={one['asked_units']} ({one['kind']})"
        yield f"Earlier, request {one['request']}: {line}, {one['state']}{given}, {when(one['decided_at'])}{said}"
    yield _plan(facts["plan"])


def _plan(plan: Json | None) -> str:
    if plan is None or plan["made_at"] is None:
        return f"No dry run yet. {plain(plan['error']) if plan else ''}".rstrip()
    changed = [one for one in plan["objects"] if one["change"] != "same"]
    refused = [one for one in plan["objects"] if one["result"] == "refused"]
    head = f"Dry run of {when(plan['made_at'])}: {len(changed)} objects would change, {len(refused)} rejected."
    return "\n".join([head, *(f"  {one['kind']} {value(one['name'])}: {value(one['message'])}" for one in refused)])


# ---- workloads -----------------------------------------------------------------------------------------------------


def workloads(found: Json) -> Table:
    headings = ["NAME", "KIND", "CLASS", ">UNITS", ">RUN", "PHASE", "MESSAGE"]
    rows = (
        [one["name"], one["kind"], one["gpu_class"], one["units"], one["run"]["number"] if one["run"] else None,
         one["status"]["phase"], one["status"]["message"]]
        for one in found["items"]
    )  # fmt: skip
    return table(headings, rows)


def workload(found: Json) -> str:
    """The status of a workload, its configuration, and the times and the outcome of its last run."""
    run = found["run"]
    rows = [
        ("team", found["team"]),
        ("kind", found["kind"]),
        ("class", found["gpu_class"]),
        ("units", found["units"]),
        ("image", found["image"]),
        ("page", found["url"]),
    ]
    if run:
        names = ("requested_at", "admitted_at", "started_at", "ready_at", "ends_at", "ended_at")
        rows += [
            (f"run {run['number']}", " ".join(part for part in (run["outcome"], run["reason"]) if part) or "not ended")
        ]
        rows += [(name.removesuffix("_at").replace("_", " "), when(run[name])) for name in names if run[name]]
        rows += [("exit code", run["exit_code"])] if run["exit_code"] is not None else []
    head = f"{plain(found['name'])}: {found['status']['phase']}. {plain(found['status']['message'])}"
    return "\n".join([head, *(f"  {name:<10} {value(told)}" for name, told in rows)])


def why(found: Json) -> str:
    """The reason of its status, the start estimate and all facts; then the suggested actions, best first."""
    status = found["status"]
    parts = [f"{plain(found['name'])}: {status['phase']} ({plain(status['reason'])}). {plain(status['message'])}"]
    if ending := {"never": CANNOT_START, "stuck": "Action required: it does not start automatically."}.get(
        status["verdict"]
    ):
        parts.append(ending)
    if said := estimate(found.get("estimate")):
        parts.append(said)
    parts += [f"  {plain(name)}: {value(fact)}" for name, fact in status["facts"].items()]
    parts += [plain(finding) for finding in status["findings"]]
    for step in status["next_steps"]:
        link = f" {plain(step['url'])}" if step["url"] else ""
        parts.append(f"- {plain(step['title'])}: {plain(step['why'])}{link}")
    return "\n".join(parts)


def estimate(found: Json | None) -> str:
    if found is None:
        return ""
    if "cannot_tell" in found:
        return f"No start estimate: {plain(found['cannot_tell'])}"
    return f"Estimated start: {when(found['earliest'])} to {when(found['latest'])} ({plain(found['basis'])})"


def progress(run: Json) -> str:
    """The status of a run in one line. For a queued run also its position and start estimate, if they are known."""
    status = run["status"]
    parts = [f"{status['phase']}: {plain(status['message'])}"]
    if (position := status["facts"].get("position")) is not None:
        parts.append(f"Position {position} in the team's queue.")
    if expected := estimate(run.get("estimate")):
        parts.append(expected)
    return " ".join(parts)


# ---- tokens --------------------------------------------------------------------------------------------------------


def tokens(found: Json) -> Table:
    headings = ["PREFIX", "NAME", "SCOPES", "EXPIRES", "LAST USED"]
    rows = (
        [one["prefix"], one["name"], " ".join(one["scopes"]), when(one["expires_at"]), when(one["last_used_at"])]
        for one in found["items"]
    )
    return table(headings, rows)


def notices(found: Json) -> Table:
    rows = (
        [when(one["at"]), "read" if one["read_at"] else "unread", one["subject"], one["url"]] for one in found["items"]
    )
    return table(["AT", "STATE", "NOTICE", "PAGE"], rows)


def me(found: Json) -> str:
    teams = ", ".join(map(plain, found["teams"])) or "none"
    told = f"Signed in as {plain(found['email'])}. Teams: {teams}. Token scopes: {', '.join(found['scopes'])}."
    token = found.get("token")  # a portal of an earlier release does not say it
    return f"{told} Token {plain(token['name'])} expires on {when(token['expires_at'])}." if token else told
