"""Who may do what in a tenant. Pure: (actor, row, facts) → Refusal or None; asked by buttons and by actions alike."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts.actor import Actor
from accounts.models import Role, Scope
from accounts.policy import scope_refusal
from portal.errors import Refusal
from portal.quota_bar import several

OWNER, MANAGER, MEMBER, VIEWER = "owner", "manager", "member", "viewer"
MEMBER_ROLES = (OWNER, MANAGER, MEMBER, VIEWER)
MANAGING = (OWNER, MANAGER)
LINES_MAX = 20
UNITS_MAX = 100_000
PERIOD_MAX = timedelta(days=3 * 366)
JUSTIFICATION_MAX = 2000
REASON_MAX = 500
MESSAGE_MAX = 300
COMMENT_MAX = 2000
# Namespaces that Kubernetes, Kueue and the portal use themselves.
RESERVED_SLUGS = ("default", "gpu-portal", "kueue", "kube", "openshift", "system")


LAST_OWNER = Refusal("last_owner", "A team needs an owner. Make somebody else an owner first.", status=409)


@dataclass(frozen=True)
class Standing:
    """What the actor is in the tenant: "" for nobody. `wanted` is the namespace's: active, suspended or closed."""

    role: str
    wanted: str = "active"


@dataclass(frozen=True)
class ClassFacts:
    """A class as a request sees it. `held`: units of it that the tenant has in force now; `successor`: the name of the
    class that replaces it, "" for none.
    """

    slug: str
    name: str
    life_cycle: str
    held: int = 0
    is_pending: bool = False
    successor: str = ""
    # What is pending would take units back.
    is_reclaimed: bool = False
    unit: str = "unit"


@dataclass(frozen=True)
class Asked:
    """One line as typed. `units` of a base line are the new total, of a boost what is added."""

    gpu_class: str
    units: int
    starts: datetime
    ends: datetime
    kind: str = "base"


@dataclass(frozen=True)
class Taken:
    """One line of taking back as typed: the lower total from `starts` until the end of the grant that it cuts."""

    gpu_class: str
    units: int
    starts: datetime


@dataclass(frozen=True)
class LineFacts:
    """A line as somebody meets it who may decide it. `decides`: slugs of the actor's classes, also as a deputy, None
    for all of them.
    """

    gpu_class: str
    class_name: str
    state: str
    filed_by: int
    role: str
    decides: Collection[str] | None
    # Of some approver, whatever the person's own role.
    is_deputy: bool = False


@dataclass(frozen=True)
class Excess:
    """What a decision would promise beyond the limit of a class. `limit` None: nobody knows what is allocatable."""

    class_name: str
    units: int
    limit: int | None


def may_create_tenant(by: Actor) -> Refusal | None:
    if by.operates:
        return None
    return Refusal("not_allowed", "Teams are set up by the operators of the portal; ask them for one.", status=403)


def slug_refusal(slug: str) -> Refusal | None:
    """A tenant's short name becomes a namespace's."""
    if slug in RESERVED_SLUGS or slug.startswith(("kube-", "kueue-", "gpu-portal-", "openshift-")):
        return Refusal("reserved", f"'{slug}' is the name of a part of the system; choose another.", "slug")
    allowed = "abcdefghijklmnopqrstuvwxyz0123456789-"
    if not 1 <= len(slug) <= 40 or slug.strip("-") != slug or "--" in slug or any(c not in allowed for c in slug):
        text = f"Use lower-case letters, digits and single hyphens, up to 40 characters; '{slug[:60]}' is not possible."
        return Refusal("bad_name", text, "slug")
    return None


def may_manage_members(by: Actor, standing: Standing) -> Refusal | None:
    return may_see_who_waits(by, standing) or scope_refusal(by, Scope.ADMIN)


def may_see_who_waits(by: Actor, standing: Standing) -> Refusal | None:
    """Invitations and requests to join; for a token, reading is enough."""
    if by.user is None or standing.role in MANAGING or by.has_role(Role.ADMIN):
        return None
    return Refusal("not_allowed", "Members are added and removed by the owners and managers of the team.", status=403)


def may_give_role(by: Actor, standing: Standing, role: str) -> Refusal | None:
    if role not in MEMBER_ROLES:
        return Refusal("unknown_role", f"There is no role {role!r}; choose {', '.join(MEMBER_ROLES)}.", "role")
    if role == OWNER and standing.role == MANAGER and not by.has_role(Role.ADMIN):
        return Refusal("not_allowed", "Only an owner makes others owners.", "role", status=403)
    return None


def may_remove_member(by: Actor, standing: Standing, *, role: str, is_self: bool, owners: int) -> Refusal | None:
    """`role` is that of the person to go, `owners` how many there are. Everybody may leave, the last owner may not."""
    if not is_self and (refusal := may_manage_members(by, standing)):
        return refusal
    if not is_self and role == OWNER and standing.role == MANAGER and not by.has_role(Role.ADMIN):
        return Refusal("not_allowed", "Only an owner removes an owner.", status=403)
    return LAST_OWNER if role == OWNER and owners <= 1 else None


def may_take_role(by: Actor, standing: Standing, *, role: str, owners: int) -> Refusal | None:
    """From somebody who has `role`; `owners`: how many there are."""
    if role != OWNER:
        return None
    if standing.role == MANAGER and not by.has_role(Role.ADMIN):
        return Refusal("not_allowed", "Only an owner changes the role of an owner.", status=403)
    return LAST_OWNER if owners <= 1 else None


def may_be_added(email: str, *, is_active: bool) -> Refusal | None:
    if is_active:
        return None
    return Refusal("suspended", f"The account of '{email}' is suspended; ask an administrator.", "email", status=409)


def may_ask_to_join(by: Actor, standing: Standing, *, message: str) -> Refusal | None:
    if refusal := scope_refusal(by, Scope.REQUEST):
        return refusal
    if standing.role:
        return Refusal("already_member", f"You are {standing.role} of this team already.", status=409)
    if standing.wanted == "closed":
        return Refusal("closed", "This team is being closed; ask to join another one.", status=409)
    if len(message) > MESSAGE_MAX:
        text = f"A message has at most {MESSAGE_MAX} characters, this one has {len(message)}; shorten it."
        return Refusal("bad_message", text, "message")
    return None


def may_accept_invitation(*, expires_at: datetime, now: datetime) -> Refusal | None:
    if expires_at > now:
        return None
    text = f"This invitation was good until {expires_at:%d %b %Y}. Ask the team for a new one, or ask to join."
    return Refusal("lapsed", text, status=409)


def may_file(by: Actor, standing: Standing) -> Refusal | None:
    if refusal := scope_refusal(by, Scope.REQUEST):
        return refusal
    if by.user is not None and standing.role not in MANAGING:
        return Refusal("not_allowed", "Quota is asked for by the owners and managers of the team; ask one.", status=403)
    if standing.wanted == "closed":
        return Refusal("closed", "This team is being closed; nothing can be asked for any more.", status=409)
    return None


def may_comment(
    by: Actor, standing: Standing, *, is_approver: bool, asks_back: bool, is_pending: bool, is_filer: bool = False
) -> Refusal | None:
    """`is_approver`: of a class in it. Members talk about their team's requests; asking back is an approver's."""
    if refusal := scope_refusal(by, Scope.DECIDE if asks_back else Scope.REQUEST):
        return refusal
    if not asks_back and (standing.role or is_approver or is_filer):
        return None
    if not is_approver or standing.role:
        text = "Comments are for the team and for who decides about one of the classes."
        return Refusal("not_allowed", text, status=403)
    if not is_pending:
        return Refusal(
            "already_decided", "No line of this request is pending any more; nobody has to answer.", status=409
        )
    return None


def comment_refusal(text: str) -> Refusal | None:
    if 1 <= len(text) <= COMMENT_MAX:
        return None
    return Refusal("bad_comment", f"A comment has 1 to {COMMENT_MAX:,} characters, this one has {len(text):,}.", "text")


def class_refusal(facts: ClassFacts) -> Refusal | None:
    """Can nothing at all be asked of this class now? The form shows why instead of a field."""
    if facts.is_reclaimed:
        text = f"Some of {facts.name} may be taken back; that is decided first. Say under that request what you need."
        return Refusal("already_pending", text, "gpu_class", status=409)
    if facts.is_pending:
        text = f"Your team already waits for a decision about {facts.name}; withdraw that line first or wait for it."
        return Refusal("already_pending", text, "gpu_class", status=409)
    if facts.life_cycle in ("draft", "retired"):
        instead = f" Choose its successor, {facts.successor}." if facts.successor else ""
        return Refusal("class_closed", f"{facts.name} is not open for requests.{instead}", "gpu_class")
    return None


def line_refusal(asked: Asked, facts: ClassFacts | None, *, now: datetime) -> Refusal | None:
    """Is this line possible at all? `facts` None: no such class in the catalog."""
    if facts is None:
        return Refusal("unknown_class", f"There is no class '{asked.gpu_class}'; see the catalog.", "gpu_class")
    if asked.kind not in ("base", "boost"):
        return Refusal("bad_kind", "A line is a new total (base) or a boost.", "kind")
    if not 0 <= asked.units <= UNITS_MAX:
        return Refusal("bad_units", f"Say a whole number of {several(facts.unit)} from 0 to {UNITS_MAX:,}.", "units")
    if asked.kind == "boost" and asked.units == 0:
        return Refusal("bad_units", f"A boost adds at least 1 {facts.unit}.", "units")
    if asked.ends <= asked.starts or asked.ends <= now:
        return Refusal("bad_period", "The period has to end after its start, and in the future.", "ends_at")
    if asked.ends - asked.starts > PERIOD_MAX:
        return Refusal("bad_period", "A period has at most three years; ask again later.", "ends_at")
    if refusal := class_refusal(facts):
        return refusal
    if refusal := growth_refusal(facts, kind=asked.kind, units=asked.units):
        return refusal
    if asked.kind == "base" and asked.units == 0 and facts.held == 0:
        return Refusal("nothing_to_release", f"Your team holds nothing of {facts.name}.", "units")
    return None


def growth_refusal(facts: ClassFacts, *, kind: str, units: int) -> Refusal | None:
    """Asked when a line is filed and again when it is decided: the class may have been retired in between."""
    if facts.life_cycle == "active" or kind == "reclaim" or units <= (0 if kind == "boost" else facts.held):
        return None
    word = "being retired" if facts.life_cycle == "retiring" else facts.life_cycle
    instead = f"Choose its successor, {facts.successor}." if facts.successor else "Choose another class."
    text = f"{facts.name} is {word}: the team holds {facts.held}, more is not given any more. {instead}"
    return Refusal("class_retiring", text, "units", status=409)


def request_refusal(lines: Collection[Asked | Taken], justification: str) -> Refusal | None:
    if not 1 <= len(lines) <= LINES_MAX:
        return Refusal("bad_lines", f"A request has 1 to {LINES_MAX} lines.", "lines")
    if len({line.gpu_class for line in lines}) < len(lines):
        return Refusal("bad_lines", "A class stands in one line of a request only.", "lines")
    if not 1 <= len(justification.strip()) <= JUSTIFICATION_MAX:
        text = f"Say in up to {JUSTIFICATION_MAX:,} characters what it is for; approvers decide by it."
        return Refusal("bad_justification", text, "justification")
    return None


def may_withdraw(by: Actor, standing: Standing, *, filed_by: int, is_reclaim: bool = False) -> Refusal | None:
    """`is_reclaim`: it takes units back, which the team cannot undo by itself."""
    if refusal := scope_refusal(by, Scope.REQUEST):
        return refusal
    if by.user is None or by.user_id == filed_by:
        return None
    if is_reclaim:
        text = "Taking back is withdrawn by who filed it. The team says under the request what it needs."
        return Refusal("not_allowed", text, status=403)
    if standing.role in MANAGING:
        return None
    return Refusal("not_allowed", "A request is withdrawn by who filed it, or by an owner or manager.", status=403)


def may_decide(by: Actor, line: LineFacts) -> Refusal | None:
    """An approver of this class or a deputy, never the requester nor a member of the team. For a yes more is asked."""
    if refusal := scope_refusal(by, Scope.DECIDE):
        return refusal
    if not (by.has_role(Role.APPROVER) or line.is_deputy):
        return Refusal("not_allowed", "Requests are decided by approvers.", status=403)
    if by.user_id == line.filed_by:
        return Refusal("own_request", "You filed this request yourself; another approver decides it.", status=403)
    if line.role:
        return Refusal("own_team", "You are a member of this team; another approver decides its requests.", status=403)
    if line.decides is not None and line.gpu_class not in line.decides:
        return Refusal("not_your_class", f"{line.class_name} is decided by other approvers.", status=403)
    if line.state != "pending":
        return Refusal(
            "already_decided",
            f"This line is {line.state} already; nothing was changed. Reload the page to see who decided and when.",
            status=409,
        )
    return None


def may_grant(standing: Standing) -> Refusal | None:
    """A closed team's lines can be denied only."""
    if standing.wanted == "closed":
        return Refusal("closed", "This team is being closed; nothing is granted to it any more.", status=409)
    return None


def may_approve(
    *, units: int, starts: datetime, ends: datetime, now: datetime, is_less: bool, reason: str
) -> Refusal | None:
    """`is_less`: fewer units than were asked."""
    if not 0 <= units <= UNITS_MAX:
        return Refusal("bad_units", f"Units are whole numbers from 0 to {UNITS_MAX:,}.", "units")
    if ends <= max(starts, now):
        return Refusal("bad_period", "The period is over before it starts; choose a later end.", "ends_at")
    if ends - starts > PERIOD_MAX:
        return Refusal("bad_period", "A period has at most three years.", "ends_at")
    if is_less and not reason:
        return Refusal("reason_missing", "Say why it is less than was asked; the team reads it.", "reason")
    return None


def may_over_promise(excesses: Collection[Excess], *, is_ticked: bool, reason: str) -> Refusal | None:
    """More than the class can give at some instant: only knowingly, and with a reason that stays in the record."""
    if not excesses:
        return None
    worst = max(excesses, key=lambda excess: excess.units)
    if worst.limit is None:
        why = "no fresh data from the cluster, no limit set"
        what = f"What {worst.class_name} can give is not known at the moment ({why})."
    else:
        what = (
            f"This promises {worst.units} of {worst.class_name} more than the {worst.limit} it can give at that time."
        )
    if not is_ticked:
        return Refusal(
            "over_promised", f"{what} Tick 'promise it anyway' and say why, or give fewer.", "over_promise", 409
        )
    if not reason.strip():
        return Refusal("reason_missing", f"{what} Say why it is promised anyway.", "over_promise_reason")
    return None


def may_deny(*, reason: str) -> Refusal | None:
    if 1 <= len(reason.strip()) <= REASON_MAX:
        return None
    return Refusal("reason_missing", f"Say in up to {REASON_MAX} characters why; the team reads it.", "reason")


def may_answer_join(by: Actor, standing: Standing, *, accept: bool, role: str, reason: str) -> Refusal | None:
    """A yes may have a reason as well."""
    if len(reason) <= MESSAGE_MAX and (accept or reason):
        # A no gives none, but a role that there is not was not meant.
        return may_give_role(by, standing, role) if accept or role not in MEMBER_ROLES else None
    return Refusal("reason_missing", f"Say in up to {MESSAGE_MAX} characters why; the person reads it.", "reason")


def may_operate(by: Actor) -> Refusal | None:
    """Suspend, resume and close namespaces."""
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    if by.operates:
        return None
    return Refusal("not_allowed", "Only operators of the portal may do this.", status=403)
