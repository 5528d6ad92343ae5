"""MIG layouts of sets of nodes, and measurements of nodes, as the API returns them → tables and sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table

from gpu_cli.formatting import Json, plain, table, value, when
from gpu_cli.maintenances import UNKNOWN_NOW

# ---- MIG layouts ---------------------------------------------------------------------------------------------------


def mig_sets(found: Sequence[Json]) -> Table:
    """A row for each node; those that cannot be planned with the reason."""
    return table(["SET", "PRODUCT", "NODE", ">GPUS", "OFFERS NOW", "NOTE"], _set_rows(found))


def _set_rows(found: Sequence[Json]) -> Iterator[list[object]]:
    for one in found:
        head = [one["set"], one["product"]]
        for node in one["nodes"]:
            yield [*head, node["name"], node["gpus"], _counts(node["offers"]), ""]
        for node in one["left_out"]:
            yield [*head, node["name"], None, None, f"left out: {node['reason']}"]


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{number} × {name}" for name, number in found.items())


def mig_plan(found: Json) -> Group:
    """What is served and what not, the layouts, whom it affects, and the maintenances that would do it."""
    return Group(*_plan_parts(found))


def _plan_parts(found: Json) -> Iterator[RenderableType]:
    if not found["is_known"]:
        yield UNKNOWN_NOW
    rows = [
        ("served", _counts(found["served"])),
        ("not served", _counts(found["unserved"])),
        ("more than wanted", _counts(found["spare"])),
        ("memory slices without an instance", found["stranded_memory_slices"] or ""),
    ]
    proven = "no other layouts serve more" if found["is_best"] else f"no layouts serve more than {found['at_most']}"
    yield "\n".join([f"Proven: {proven}.", *(f"  {name}: {value(told)}" for name, told in rows if told)])
    figures = ("profile", "wanted", "now", "elsewhere", "granted", "requested", "used", "queued")
    headings = ["PROFILE", ">PROPOSED", *(f">{name.upper()}" for name in figures[2:])]
    yield table(headings, ([one[name] for name in figures] for one in found["demand"]))
    yield table(["NODE", "LAYOUT", "OFFERS THEN"], map(_planned_row, found["nodes"]))
    for one in found["broken"]:
        yield plain(
            f"{one['gpu_class']}: {one['then']} units would exist, {one['now']} now, and {one['granted']} are granted."
        )
    if found["runs"]:
        runs = (
            [one["team"], one["workload"], one["person"], when(one["ends_at"]), ", ".join(one["nodes"])]
            for one in found["runs"]
        )
        yield table(["TEAM", "WORKLOAD", "PERSON", "ENDS", "NODES THAT CHANGE"], runs)
    if found["other_pods"]:
        yield f"Pods outside the portal on nodes that change: {plain(', '.join(found['other_pods']))}"
    if found["steps"]:
        yield table(["STEP", "NODES", "MIG CONFIGURATION", "START", "END", "MISSING MEANWHILE"], _steps(found))
    else:
        yield "No node has to change."


def _planned_row(node: Json) -> list[object]:
    parts = (f"{one['gpus']} GPUs: {_counts(one['instances'])}" for one in node["layout"])
    return [node["name"], "; ".join(parts) if node["is_changed"] else "stays", _counts(node["offers"])]


def _steps(found: Json) -> Iterator[list[object]]:
    for number, one in enumerate(found["steps"], start=1):
        window = [when(one["starts_at"]), when(one["ends_at"])]
        yield [number, ", ".join(one["nodes"]), one["mig_config"], *window, _counts(one["missing"])]


# ---- measurements --------------------------------------------------------------------------------------------------


def measurements(found: Json) -> Table:
    headings = [">NUMBER", "MEASURED", "KIND", ">GPUS", "RESULT", "DRIVER", "RECORDED BY", "WITHDRAWN"]
    return table(headings, map(_measurement_row, found["items"]))


def measurement(found: Json) -> Table:
    return measurements({"items": [found]})


def _measurement_row(one: Json) -> list[object]:
    day = one["withdrawn_at"] and f"{when(one['withdrawn_at'])}: {one['withdrawn_because']}"
    names = ("id", "measured_on", "kind", "gpus")
    return [*(one[name] for name in names), _result(one), one["driver"], one["by"], day]


def _result(one: Json) -> str:
    """The bandwidth, or the kinds of links between different GPUs."""
    if one["links"] is None:
        return f"{one['bus_gb_s']} GB/s with {one['message_bytes']} bytes"
    return ", ".join(sorted({link for row in one["links"] for link in row if link != "X"}))
