"""Maintenances as the API returns them → tables and sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table

from gpu_cli.formatting import Json, plain, table, value, when

UNKNOWN_NOW = "There are no current updates from the cluster: this is what was known last."
NOT_CHOSEN = {"ends_before": "ends before", "stays": "stays, the drain waits"}


def maintenances(found: Json) -> Table:
    return table(["MAINTENANCE", "KIND", "STATE", "START", "END", "NODES", "REASON"], map(_row, found["items"]))


def _row(one: Json) -> list[object]:
    nodes = ", ".join(node["name"] for node in one["nodes"])
    return [one["id"], one["kind"], _state(one), when(one["starts_at"]), when(one["ends_at"]), nodes, one["reason"]]


def _state(one: Json) -> str:
    """The outcome of one that is over; otherwise the step of the node that is least far, and what hinders it."""
    if one["outcome"]:
        return str(one["outcome"])
    said = ", stuck" if any(node["is_stuck"] for node in one["nodes"]) else ""
    return f"{one['state']}{said}{', to be canceled' if one['cancel_requested_at'] else ''}"


def maintenance(found: Json) -> Group:
    """One with its window, its change, its nodes, who was told, and what is affected now."""
    return Group(*_parts(found))


def _parts(found: Json) -> Iterator[RenderableType]:
    devices = " ".join(f"{name}={number}" for name, number in found["expected"].items())
    rows = [
        ("reason", found["reason"]),
        ("hold", when(found["holds_from"])),
        ("start", when(found["starts_at"])),
        ("end", when(found["ends_at"])),
        ("planned", f"{when(found['created_at'])} by {found['created_by']}"),
        ("MIG configuration", found["mig_config"]),
        ("device plugin configuration", found["plugin_config"]),
        ("devices of each node afterwards", devices),
        ("confirmed", found["confirmed_at"] and when(found["confirmed_at"])),
        ("canceled", found["cancel_requested_at"] and when(found["cancel_requested_at"])),
        ("released", found["release_requested_at"] and when(found["release_requested_at"])),
        ("ended", found["ended_at"] and when(found["ended_at"])),
    ]
    head = f"Maintenance {found['id']}: {found['kind']}, {_state(found)}."
    yield "\n".join([head, *(f"  {name}: {value(told)}" for name, told in rows if told)])
    nodes = ([one["name"], _step(one), when(one["step_since"]), one["problem"]] for one in found["nodes"])
    yield table(["NODE", "STEP", "SINCE", "WAITS FOR"], nodes)
    if found["told"]:
        told = ([when(one["at"]), one["stage"], one["team"], one["workload"], one["run"]] for one in found["told"])
        yield table(["TOLD AT", "STAGE", "TEAM", "WORKLOAD", ">RUN"], told)
    if found["affected"]:
        yield preview(found["affected"])


def _step(node: Json) -> str:
    said = ", stuck" if node["is_stuck"] else ""
    return f"{node['step']}{', going back' if node['is_going_back'] else ''}{said}"


def of_run(found: Json) -> RenderableType:
    """The maintenances of a run's nodes, with what happens to it at the drain."""
    if not found["maintenances"]:
        return "Its nodes are in no maintenance." if found["is_known"] else f"No maintenance is known. {UNKNOWN_NOW}"
    headings = ["MAINTENANCE", "START", "END", "NODES", "AT THE DRAIN", "REASON", "MESSAGE"]
    rows = table(headings, map(_choice_row, found["maintenances"]))
    return rows if found["is_known"] else Group(UNKNOWN_NOW, rows)


def _choice_row(one: Json) -> list[object]:
    window = (when(one["starts_at"]), when(one["ends_at"]))
    return [one["id"], *window, ", ".join(one["nodes"]), _at_drain(one), one["reason"], one["message"]]


def _at_drain(one: Json) -> str:
    """What happens at the drain, and whether somebody chose it where one can choose."""
    if one["at_drain"] in NOT_CHOSEN:
        return NOT_CHOSEN[one["at_drain"]]
    return f"{one['at_drain']} ({'chosen' if one['is_chosen'] else 'default'})"


def preview(found: Json) -> Group:
    """Who and what a maintenance affects."""
    return Group(*_affected(found))


def _affected(found: Json) -> Iterator[RenderableType]:
    if not found["is_known"]:
        yield UNKNOWN_NOW
    if found["runs"]:
        names = ("team", "workload", "person")
        rows = (
            [*(one[name] for name in names), ", ".join(one["nodes"]), _at_drain(one), one["message"]]
            for one in found["runs"]
        )
        yield table(["TEAM", "WORKLOAD", "PERSON", "NODES", "AT THE DRAIN", "MESSAGE"], rows)
        counts = found["choices"]
        yield (
            f"At the drain, as chosen: {counts['stop']} to stop, {counts['restart']} to start elsewhere; by default to "
            f"start elsewhere: {counts['undecided']}. End before: {counts['ends_before']}. Cannot be moved, the drain "
            f"waits for them: {counts['stays']}."
        )
    elif found["is_known"]:
        yield "No workload of the portal runs on these nodes."
    if found["other_pods"]:
        yield f"The drain waits for these pods outside the portal: {plain(', '.join(found['other_pods']))}"
    if found["classes"]:
        figures = ("gpu_class", "unit", "on_nodes", "offered", "granted", "queued", "message")
        headings = ["CLASS", "UNIT", ">ON THESE NODES", ">IN ALL", ">GRANTED", ">QUEUED", "NOTE"]
        yield table(headings, ([one[name] for name in figures] for one in found["classes"]))
    elif found["is_known"]:
        yield "No open class has units on these nodes."
