"""Texts of mails about a team's lifecycle. Pure: values in, text out."""

from __future__ import annotations

from datetime import datetime

from cluster.apply.types import LeftClaims
from portal.ui.text import date_with_year, first_names, plural, time_with_zone


def closing_announcement(*, closes_at: datetime, volumes_until: datetime, at: datetime, claims: int) -> str:
    """Returns what happens from `at` on, in order."""
    if closes_at > at:
        runs = (
            f"No new workloads start from now on. Running workloads are stopped on {time_with_zone(closes_at)}; until "
            "then an operator can resume the team. The team's quota expires at the same time."
        )
    else:
        runs = "No new workloads start from now on. Running workloads are stopped, and the team's quota has expired."
    return f"{runs}\n{_volumes_sentence(closes_at, volumes_until, claims)}"


def _volumes_sentence(closes_at: datetime, volumes_until: datetime, claims: int) -> str:
    if not claims:
        return "The team has no volumes."
    if volumes_until == closes_at:
        return f"At that time, its {_volumes_are(claims)} deleted with all data."
    return (
        f"Its {_volumes_are(claims)} deleted with all data on {time_with_zone(volumes_until)}. "
        "If you still need the data, contact an operator before that."
    )


def _volumes_are(claims: int) -> str:
    """Leaves the number out if it is unknown."""
    if not claims:
        return "volumes are"
    return f"{plural(claims, 'volume')} {'is' if claims == 1 else 'are'}"


def volume_deletion_reminder(
    team: str, *, volumes_until: datetime, claims: int, left: LeftClaims | None = None
) -> tuple[str, str]:
    """Subject and body. `left`: volumes of these that were in a cluster that was replaced."""
    body = (
        f"{team} is closed. Its {_volumes_are(claims)} deleted with all data on {time_with_zone(volumes_until)}.\n"
        "If you still need the data, contact an operator before that. Deleted data cannot be restored."
    )
    if left is not None:
        body += f"\n{_left_sentence(left)}"
    return f"The volumes of {team} will be deleted on {date_with_year(volumes_until)}", body


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
