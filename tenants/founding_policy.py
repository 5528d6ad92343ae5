"""Who may ask for a team, decide about one, and edit bundles. Pure, as tenants/policy.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from accounts.actor import Actor
from accounts.models import Role, Scope
from accounts.policy import scope_refusal
from portal.errors import Refusal
from tenants import policy

NAME_MAX = 80
PURPOSE_MAX = 300
SUMMARY_MAX = 200
DAYS_MAX = 1096

SLUG_TAKEN = Refusal(
    "slug_taken",
    "A team of this short name already exists; choose another, or ask its owners to let you join.",
    "slug",
    status=409,
)
NO_BUNDLE = Refusal("unknown_bundle", "There is no such bundle for new teams; choose one of the list.", "bundle")


@dataclass(frozen=True)
class TeamFacts:
    """A request for a team as somebody meets it who may decide it. `classes`: names by slug of its bundle's lines;
    `decides`: slugs of the actor's classes, None for all of them.
    """

    asked_by: int
    is_active: bool
    state: str
    classes: Mapping[str, str]
    decides: Collection[str] | None
    is_deputy: bool = False


@dataclass(frozen=True)
class BundleUnits:
    """A line of a bundle as typed, with what is known of its class."""

    name: str
    units: int
    is_active: bool
    is_for_everyone: bool


def may_ask_for_team(by: Actor) -> Refusal | None:
    return scope_refusal(by, Scope.REQUEST)


def team_refusal(*, name: str, slug: str, purpose: str) -> Refusal | None:
    if not 1 <= len(name) <= NAME_MAX:
        text = f"Give the team a name of up to {NAME_MAX} characters that people will recognise."
        return Refusal("bad_name", text, "name")
    if not 1 <= len(purpose) <= PURPOSE_MAX:
        text = f"Say in up to {PURPOSE_MAX} characters what the team is for; approvers decide by it."
        return Refusal("bad_purpose", text, "purpose")
    return policy.slug_refusal(slug)


def may_decide_team(by: Actor, team: TeamFacts) -> Refusal | None:
    """An approver of every class in the bundle, or a deputy; never the requester. To approve more is asked."""
    if refusal := scope_refusal(by, Scope.DECIDE):
        return refusal
    if not (by.has_role(Role.APPROVER) or team.is_deputy):
        return Refusal("not_allowed", "New teams are decided by approvers.", status=403)
    if by.user_id == team.asked_by:
        return Refusal("own_request", "You asked for this team yourself; another approver decides it.", status=403)
    others = [name for slug, name in team.classes.items() if team.decides is not None and slug not in team.decides]
    if others:
        text = f"Other approvers decide this: {', '.join(others)} in its bundle is not yours."
        return Refusal("not_your_class", text, status=403)
    if team.state != "pending":
        text = (
            f"This request for a team is {team.state} already; nothing was changed. Reload the page to see who decided."
        )
        return Refusal("already_decided", text, status=409)
    return None


def may_found(team: TeamFacts, units: Collection[str]) -> Refusal | None:
    """`units`: slugs of the classes that the approver changed the units of."""
    if not team.is_active:
        text = "The account of who asked is suspended: the team would have no owner. Deny it, or restore the account."
        return Refusal("suspended", text, status=409)
    unknown = sorted(set(units) - set(team.classes))
    if unknown:
        return Refusal("unknown_class", f"The bundle has no line of '{unknown[0][:40]}'.", "units")
    return None


def units_refusal(units: Collection[str], *, by_rule: bool) -> Refusal | None:
    """`by_rule`: the rule "bundle" is on, and the yes to a team grants its lines."""
    if by_rule or not units:
        return None
    text = "Bundles are not granted with the team at the moment: its lines wait, and their units are decided then."
    return Refusal("rule_off", text, "units", status=409)


def may_try(by: Actor, *, team: str, has_tried: bool) -> Refusal | None:
    """`team`: the name of one that the person is in, "" for none. Once each, and asked before there is a class."""
    if refusal := scope_refusal(by, Scope.REQUEST):
        return refusal
    if has_tried:
        return Refusal("tried_before", "You have had your trial. Join a team, or ask for one of your own.", status=409)
    if team:
        text = f"You are in {team}: launch there, or let its owners ask for more."
        return Refusal("has_team", text, status=409)
    return None


def trial_refusal(excess: policy.Excess | None) -> Refusal | None:
    """`excess`: what one unit more would promise beyond the class's limit."""
    if excess is None:
        return None
    if excess.limit is None:
        why = f"what {excess.class_name} can give is not known at the moment (no fresh data from the cluster)"
    else:
        why = f"all units of {excess.class_name} that may be promised ({excess.limit}) are promised already"
    return Refusal("no_trial_now", f"No trial now: {why}. Try again later, or join a team.", status=409)


def gone_meanwhile(class_name: str) -> Refusal:
    text = f"No trial now: the last unit of {class_name} was promised to somebody else just now. Try again later."
    return Refusal("no_trial_now", text, status=409)


def lines_refusal(slugs: Collection[str], known: Collection[str]) -> Refusal | None:
    if len(set(slugs)) < len(slugs):
        return Refusal("bad_lines", "A class stands in one line of a bundle only.", "lines")
    unknown = sorted(set(slugs) - set(known))
    return (
        Refusal("unknown_class", f"There is no class '{unknown[0][:40]}'; see the catalog.", "lines")
        if unknown
        else None
    )


def bundle_refusal(*, name: str, summary: str, days: int, lines: Collection[BundleUnits]) -> Refusal | None:
    if not 1 <= len(name) <= 60:
        return Refusal("bad_name", "Give the bundle a name of up to 60 characters.", "name")
    if len(summary) > SUMMARY_MAX:
        return Refusal("bad_summary", f"A summary has up to {SUMMARY_MAX} characters.", "summary")
    if not 1 <= days <= DAYS_MAX:
        return Refusal("bad_period", f"A bundle lasts 1 to {DAYS_MAX:,} days (three years).", "days")
    if not 1 <= len(lines) <= policy.LINES_MAX:
        return Refusal("bad_lines", f"A bundle has 1 to {policy.LINES_MAX} lines, each class once.", "lines")
    for line in lines:
        if not 1 <= line.units <= policy.UNITS_MAX:
            text = f"{line.name}: a line has 1 to {policy.UNITS_MAX:,} units, not {line.units}."
            return Refusal("bad_units", text, "lines")
        if not line.is_active:
            return Refusal("class_closed", f"{line.name} is not open for requests; choose another class.", "lines")
        if not line.is_for_everyone:
            text = f"{line.name} is for named teams; a team that does not exist yet is none of them."
            return Refusal("class_closed", text, "lines")
    return None
