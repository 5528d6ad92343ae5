"""Texts of mails about a team's lifecycle. Pure: values in, text out."""

from __future__ import annotations

from datetime import datetime

from portal.ui.text import date_with_year, plural, time_with_zone


def closing_announcement(*, closes_at: datetime, volumes_until: datetime, at: datetime, claims: int) -> str:
    """What happens from `at` on, in order."""
    if closes_at > at:
        runs = (
            f"Nothing new starts from now on. What runs goes on until {time_with_zone(closes_at)} and is stopped then; "
            "until then the operators can take it back. The team's quota ends at the same time."
        )
    else:
        runs = "Nothing new starts from now on, what runs is stopped, and the team's quota has ended."
    return f"{runs}\n{_volumes_sentence(closes_at, volumes_until, claims)}"


def _volumes_sentence(closes_at: datetime, volumes_until: datetime, claims: int) -> str:
    if not claims:
        return "The team has no volumes."
    if volumes_until == closes_at:
        return f"Its {plural(claims, 'volume')} with everything on them are deleted then."
    return (
        f"Its {plural(claims, 'volume')} are kept until {time_with_zone(volumes_until)} and deleted then, with "
        "everything on them. Ask the operators before that if you still need the data."
    )


def volume_deletion_reminder(team: str, *, volumes_until: datetime, claims: int) -> tuple[str, str]:
    """Subject and body."""
    what = plural(claims, "volume") if claims else "volumes"
    body = (
        f"{team} is closed. Its {what} with everything on them are deleted on {time_with_zone(volumes_until)}.\n"
        "Ask the operators before that if you still need the data; afterwards nobody can bring it back."
    )
    return f"The volumes of {team} are deleted on {date_with_year(volumes_until)}", body


def deletion_notice(team: str) -> tuple[str, str]:
    """Subject and body."""
    body = "Nothing of the team is in the cluster any more, volumes included. Its requests and its history stay here."
    return f"{team} is gone from the cluster", body


def state_subject(team: str, to: str) -> str:
    return {
        "active": f"{team} is open again",
        "suspended": f"{team} is suspended: nothing new starts",
        "closed": f"{team} is being closed: everything of it in the cluster goes",
    }[to]
