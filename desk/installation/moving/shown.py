"""A move to another cluster as lines of text. Times in UTC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from desk.installation.moving.queries import LeftVolume, Move, RunOfMove, TeamMove
from portal.ui.text import plural


def move_lines(found: Move) -> Iterator[str]:
    yield from _cluster(found)
    if found.is_after:
        yield from _after(found)
    else:
        yield from _before(found)


def _cluster(found: Move) -> Iterator[str]:
    yield f"Cluster of the rows: {found.uid or 'not recorded yet, the watcher has not read it'}."
    if found.other_uid:
        yield f"The watcher reaches another cluster since {_at(found.other_since)}: {found.other_uid}."
        yield "Nothing was read from it or written to it, and no run was recorded as lost."
        yield "If this is a mistake: correct the kubeconfig or the address of the API server. That is all."
        yield f"If it takes the place of the previous one: compare --new-cluster --confirm {found.other_uid}"
    elif found.replaced_at is not None:
        yield f"It took the place of the previous one at {_at(found.replaced_at)}."


def _before(found: Move) -> Iterator[str]:
    yield ""
    yield "What a move to another cluster does:"
    for team in found.teams:
        yield _namespace(team)
        if team.is_adopted:
            yield f"  Its namespace was adopted. Unless {team.namespace} exists there, the portal makes one of its own."
            yield "  What others have in it is not moved, and it is deleted when the team is closed, not given back."
        yield from (f"  {_run(one)}" for one in team.runs)
        yield from (f"  {_volume(one)} Its files are not moved." for one in team.volumes)
    yield from _maintenances(found)
    yield "Classes without nodes: unknown until the watcher reads the nodes of the other cluster."
    runs = [one for team in found.teams for one in team.runs]
    volumes = [one for team in found.teams for one in team.volumes]
    lost = sum(one.was_sent for one in runs)
    size = sum(one.size_gib for one in volumes)
    kept = f"{plural(len(volumes), 'volume')} ({size} GiB) not moved"
    yield f"{plural(lost, 'run')} lost, {len(runs) - lost} submitted there, {kept}."


def _after(found: Move) -> Iterator[str]:
    yield f"{plural(found.lost, 'run')} of the previous cluster recorded as lost; their owners start them again."
    done = sum(one.is_done for one in found.teams)
    yield f"Namespaces as their rows want them: {done} of {len(found.teams)}."
    if not found.is_known:
        yield f"The cluster is not known: {found.problem} Volumes and classes are unknown until it is."
    for team in found.left:
        yield f"Team {team.team}:"
        yield from (f"  {line}" for line in _left_of(team))
    if found.were_adopted:
        teams = ", ".join(found.were_adopted)
        yield f"Adopted namespaces that are the portal's own now, and go with their teams: {teams}."
    if found.empty_classes:
        yield f"Classes without nodes here: {', '.join(found.empty_classes)}. Operators: add nodes, or retire them."
    if not found.left and found.is_known:
        yield "Nothing is left to do for teams."


def _left_of(team: TeamMove) -> Iterator[str]:
    if not team.is_done:
        why = f" {team.problem}" if team.problem else ""
        yield f"namespace {team.namespace} is not made yet: workers do it.{why}"
        if team.is_adopted:
            yield (
                f"It was adopted in the previous cluster. If others have a namespace {team.namespace} here, nothing is "
                "written there: an operator undoes the adoption and both consent again, or it is removed and the "
                "portal makes its own."
            )
    for run in team.runs:
        yield f"run {run.number} of {run.workload} was in the previous cluster: a worker records it as lost."
    for volume in team.volumes:
        if volume.state is None:
            yield f"{_volume(volume)} Whether its claim was restored is unknown."
        else:
            yield f"{_volume(volume)} Missing: {_who_acts(team)}"


def _namespace(team: TeamMove) -> str:
    if team.volumes_until is None:
        return f"Team {team.team}: namespace {team.namespace}, quota, queue, policies and role bindings are made again."
    until = _at(team.volumes_until)
    return f"Team {team.team} is closed: namespace {team.namespace} is kept for its volumes until {until}."


def _who_acts(team: TeamMove) -> str:
    if team.volumes_until is None:
        return "an operator restores the claim, or the team deletes the volume."
    return f"the team is closed; an operator may restore the claim before its volumes go at {_at(team.volumes_until)}."


def _run(one: RunOfMove) -> str:
    run = f"{one.kind} {one.workload}, run {one.number}:"
    if not one.was_sent:
        return f"{run} not submitted yet, so it is submitted there."
    if not one.checkpoints:
        return f"{run} lost. No checkpointing is declared: it begins again when its owner starts it."
    if not one.volume:
        return f"{run} lost, and its checkpoints with it unless they are outside of the cluster."
    return f"{run} lost. It continues from its checkpoints only if volume {one.volume} is restored."


def _volume(one: LeftVolume) -> str:
    return f"volume {one.name}, {one.size_gib} GiB."


def _maintenances(found: Move) -> Iterator[str]:
    for name, nodes in found.maintenances:
        yield (
            f"{name[0].upper()}{name[1:]} of {', '.join(nodes)} is canceled by the move: nodes there are not changed. "
            "Operators: plan it again if it is needed there."
        )


def _at(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}" if moment else "unknown"
