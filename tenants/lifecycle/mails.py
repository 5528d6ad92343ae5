"""Texts of mails about a team's lifecycle. Pure: values in, text out."""

from __future__ import annotations

from datetime import datetime

from cluster.apply.types import LeftClaims
from portal.ui.text import date_with_year, first_names, plural, time_with_zone


def closing_announcement(
    *, closes_at: datetime, volumes_until: datetime, at: datetime, claims: int | None, left: LeftClaims | None = None
) -> str:
    """Returns what happens from `at` on, in order. `claims`, `left`: as in `volume_deletion_reminder`."""
    if closes_at > at:
        runs = (
            f"No new workloads start from now on. Running workloads are stopped on {time_with_zone(closes_at)}; until "
            "then an operator can resume the team. The team's quota expires at the same time."
        )
    else:
        runs = "No new workloads start from now on. Running workloads are stopped, and the team's quota has expired."
    volumes = _volumes_sentence(closes_at, volumes_until, claims, left)
    return "\n".join([runs, volumes, *([] if left is None else [_left_sentence(left)])])


def _volumes_sentence(closes_at: datetime, volumes_until: datetime, claims: int | None, left: LeftClaims | None) -> str:
    if claims == 0:
        return f"The team has no volumes{_here(left)}."
    if volumes_until == closes_at:
        return f"At that time, its {_volumes_are(claims, left)} deleted with all data."
    return (
        f"Its {_volumes_are(claims, left)} deleted with all data on {time_with_zone(volumes_until)}. "
        "If you still need the data, contact an operator before that."
    )


def _volumes_are(claims: int | None, left: LeftClaims | None) -> str:
    """Leaves the number out if it is unknown."""
    if claims is None:
        return f"volumes{_here(left)} are"
    return f"{plural(claims, 'volume')}{_here(left)} {'is' if claims == 1 else 'are'}"


def _here(left: LeftClaims | None) -> str:
    return "" if left is None else " in this cluster"


def volume_deletion_reminder(
    team: str, *, volumes_until: datetime, claims: int | None, left: LeftClaims | None = None
) -> tuple[str, str]:
    """Subject and body. `claims`: volumes in this cluster, None if the number is unknown. `left`: volumes that were
    made in a cluster that was replaced, and are not among these.
    """
    until, day = time_with_zone(volumes_until), date_with_year(volumes_until)
    if left is not None and claims == 0:
        body = (
            f"{team} is closed and will be deleted from the cluster on {until}. It has no volumes{_here(left)}.\n"
            f"{_left_sentence(left)}\nIf you still need their data, contact an operator before that."
        )
        return f"{team} will be deleted from the cluster on {day}", body
    body = (
        f"{team} is closed. Its {_volumes_are(claims, left)} deleted with all data on {until}.\n"
        "If you still need the data, contact an operator before that. Deleted data cannot be restored."
    )
    if left is not None:
        body += f"\n{_left_sentence(left)}"
    return f"The volumes of {team} will be deleted on {day}", body


def deletion_notice(team: str, *, left: LeftClaims | None = None) -> tuple[str, str]:
    """Subject and body. `left`: volumes in a cluster that was replaced by this one, which the portal does not reach."""
    volumes = "" if left is not None else ", including volumes"
    body = f"All objects of the team in the cluster were deleted{volumes}. Its requests and history are kept."
    if left is not None:
        body += f"\n{_left_sentence(left)}"
    return f"{team} was deleted from the cluster", body


def _left_sentence(left: LeftClaims) -> str:
    number = plural(len(left.names), "volume")
    was = "was" if len(left.names) == 1 else "were"
    return (
        f"{number} ({first_names(left.names)}) {was} made in {left.where}, which was replaced by another cluster: the "
        "portal does not delete what is there."
    )


def state_subject(team: str, to: str) -> str:
    return {
        "active": f"{team} is active again",
        "suspended": f"{team} is suspended: no new workloads start",
        "closed": f"{team} is being closed: its objects in the cluster will be deleted",
    }[to]
