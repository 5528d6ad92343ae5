"""The scenarios of `run.py demo`: the everyday demo, or the one given with `--scenario`.

Each has its own users, hardware and state directory, so starting one does not change the data of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from devcluster.processes.console import UserError


@dataclass(frozen=True)
class Scenario:
    """`cast`: (name, role in words, team); the team of an owner is created. `storage`: (name of the requester, team,
    GiB). `notebooks`: how many may run on this machine at the same time. `about`: one sentence, "" for the everyday
    demo. `to_try`: suggestions to print, with {url} for the portal's address. `runs_anywhere`: it launches nothing, so
    that it can also start on a real cluster. `past_hours`: how long its runs have held their GPUs when it starts, with
    their metrics in Prometheus.
    """

    name: str
    hardware: str
    cast: tuple[tuple[str, str, str], ...]
    storage: tuple[tuple[str, str, int], ...]
    notebooks: int
    about: str
    to_try: tuple[str, ...]
    runs_anywhere: bool = False
    past_hours: int = 0

    @property
    def folder(self) -> str:
        """The name of its state directory below .run."""
        return f"demo-{self.name}" if self.name else "demo"


# Charlie is not a member of team-a. What goes on, and the time before: devcluster/demo/sample/.
EVERYDAY = Scenario(
    name="",
    hardware="mixed",
    cast=(
        ("Alice", "owner", "team-a"),
        ("Bob", "member", "team-a"),
        ("Charlie", "owner", "team-c"),
        ("Erin", "owner", "vision"),
        ("Frank", "owner", "speech"),
        ("Dana", "approver of all classes", ""),
        ("Olga", "operator and administrator", ""),
    ),
    storage=(("alice", "team-a", 100), ("charlie", "team-c", 200)),
    notebooks=6,
    about="",
    to_try=(
        "As Alice: request two A100 GPUs on the page of team-a. As Dana: check its effect and decide.",
        "As Alice: launch a notebook, watch it queue and start, open it, compute 6*7 on a simulated node.",
        "As Erin or Frank: see why workloads of vision and speech are queued. As Dana: decide the requests in Inbox.",
        "With Alice's token from .run/demo.json:\n     curl -H 'Authorization: Bearer TOKEN' {url}/api/v1/me",
    ),
)
# For a cluster of one's own, where workloads would use real GPUs.
QUIET = replace(
    EVERYDAY,
    name="quiet",
    cast=tuple(one for one in EVERYDAY.cast if one[0] not in ("Erin", "Frank")),
    about="Two teams without workloads.",
    to_try=(*EVERYDAY.to_try[:2], EVERYDAY.to_try[3]),
    runs_anywhere=True,
)
# The quota and workloads of its teams are in devcluster/demo/sample/contention.py.
MORNING = Scenario(
    name="morning",
    hardware="morning",
    cast=(
        ("Alice", "owner", "vision"),
        ("Bob", "owner", "lab"),
        ("Charlie", "owner", "serving"),
        ("Erin", "member", "lab"),
        ("Dana", "approver of all classes", ""),
        ("Olga", "operator and administrator", ""),
    ),
    storage=(("bob", "lab", 200),),
    notebooks=8,
    about="Three teams request 36 of 32 whole GPUs; 12 MIG slices and 16 shares are idle.",
    to_try=(
        "As Olga: open the page Queue. Four notebooks of the team lab are queued, each with the reason.",
        "As Bob: choose “Switch to time-sliced” for a queued notebook. It starts on a share immediately.",
        "As Charlie: change a job of the team serving to a MIG slice. A notebook borrows the freed GPU.",
    ),
)
# Its runs are in devcluster/demo/sample/idle_gpus.py, and what their GPUs do in devcluster/monitoring/profiles.py.
WASTE = Scenario(
    name="waste",
    hardware="waste",
    cast=(
        ("Alice", "owner", "vision"),
        ("Bob", "owner", "lab"),
        ("Charlie", "owner", "serving"),
        ("Erin", "member", "lab"),
        ("Dana", "approver of all classes", ""),
        ("Olga", "operator and administrator", ""),
    ),
    storage=(),
    notebooks=4,
    about="All 8 GPUs have been allocated for 6 hours; 4 of them were used less than 2 %.",
    to_try=(
        "As Olga: Overview leads to the runs whose GPUs are idle. Within three minutes these are four, with the cost.",
        "Send a query to prometheus_url of .run/demo-waste.json:\n"
        "     curl -G PROMETHEUS_URL/api/v1/query --data-urlencode \\\n"
        "       'query=avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{{exported_pod!=\"\"}}[6h])'",
        "As Alice: stop the job evaluation, and launch one with the variable GPU_PROFILE: steady, bursts, idle, memory "
        "or finished.",
    ),
    past_hours=6,
)


def scenario_named(name: str) -> Scenario:
    """Raises UserError for an unknown name."""
    if name == EVERYDAY.name:
        return EVERYDAY
    known = {one.name: one for one in (MORNING, QUIET, WASTE)}
    if name not in known:
        way_on = f"Scenarios: {', '.join(sorted(known))}. Without --scenario the everyday demo starts."
        raise UserError(f"There is no scenario {name}.", way_on)
    return known[name]
