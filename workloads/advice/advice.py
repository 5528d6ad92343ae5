"""Suggested actions for a queued or stuck run, best first, and whether waiting is enough. Pure: facts in, words and
addresses out. An action is only suggested if the same facts show that it works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from portal.ui.text import capital, date_and_time, plural, plural_form, with_full_stop
from workloads.advice.changes import change, files_change, is_of_size, less_beside, size_change
from workloads.advice.class_context import context_sentences
from workloads.advice.facts import AdviceFacts, ClassOption, OtherRun
from workloads.advice.other_classes import other_classes
from workloads.advice.remedies import Remedy, remedies_for
from workloads.advice.steps import NextStep, PageLink, changed, free_now
from workloads.status.explain.types import Who, who_acts
from workloads.status.types import Phase, Status

NOT_YET, NEVER, STUCK, OVER = "not_yet", "never", "stuck", "over"
# Sets of runs to stop are searched among at most this many runs, and have at most this many members.
STOPPED_OF, STOPPED_TOGETHER = 8, 3


@dataclass(frozen=True)
class Advice:
    """`verdict`: not_yet (it starts automatically), never (with this configuration), stuck (waiting is not enough) or
    over; `said`: the same as a sentence. `findings`: what else is known about the class.
    """

    verdict: str
    said: str
    steps: tuple[NextStep, ...]
    findings: tuple[str, ...] = ()

    @property
    def first(self) -> NextStep | None:
        return self.steps[0] if self.steps else None


def is_never(told: Status, facts: AdviceFacts) -> bool:
    """The run never starts with its current configuration: the cluster's message says so, or no node has so many
    units.
    """
    if told.explained is not None and told.explained.is_final:
        return True
    if told.phase not in (Phase.QUEUED, Phase.BLOCKED) or facts.own is None:
        return False
    # A class without nodes says nothing about the size: a node may be added or come back.
    return 0 < facts.own.most_units < facts.each


def advice(told: Status, facts: AdviceFacts) -> Advice | None:
    """Returns None if no user can do anything about it."""
    parts = remedies_for(told)
    if not parts:
        return None
    never = is_never(told, facts)
    if facts.ending and facts.own is not None and Remedy.FEWER_NOW in parts and not never and _ending_is_enough(facts):
        parts = (Remedy.WAIT, *(part for part in parts if part is not Remedy.WAIT))
    steps: list[NextStep] = []
    for part in parts:
        if part is Remedy.WAIT and never:
            continue
        steps += _STEPS[part](told, facts)
    if Remedy.OTHER_CLASS in parts:
        steps += _smaller_elsewhere(told, facts)
    if not steps:
        return None
    verdict = _verdict(told, steps, never=never)
    findings = context_sentences(facts.around) if facts.around is not None and Remedy.OTHER_CLASS in parts else ()
    return Advice(verdict, _SAID[verdict], tuple(steps), findings)


def _verdict(told: Status, steps: list[NextStep], *, never: bool) -> str:
    if told.phase is Phase.FAILED:
        return OVER
    if never:
        return NEVER
    return NOT_YET if any(step.verb == "wait" for step in steps) else STUCK


_SAID = {
    NOT_YET: "Starts automatically; no action needed.",
    NEVER: "Cannot start with this configuration.",
    STUCK: "Action required: it does not start automatically.",
    OVER: "Ended; does not restart automatically.",
}


# ---- suggested actions -----------------------------------------------------------------------------------------------


def _classes(_told: Status, facts: AdviceFacts) -> list[NextStep]:
    return other_classes(facts, with_fewer_units=False)


def _smaller_elsewhere(told: Status, facts: AdviceFacts) -> list[NextStep]:
    """The last resort. Fewer units of its own class are closer to what was requested; fewer cores are nothing."""
    is_cores = facts.own is not None and facts.own.figures.unit == "core"
    if is_cores or _classes(told, facts) or _fewer_now(told, facts):
        return []
    return other_classes(facts, with_fewer_units=True)


def _fewer_now(told: Status, facts: AdviceFacts) -> list[NextStep]:
    own = facts.own
    if own is None or not own.takes_fewer or not facts.may_change or is_of_size(told):
        return []
    if told.reason != "topology_refused" and facts.starts_on(own.figures) and _limit(told) >= facts.units:
        # The units that it requests are free: it starts in a moment.
        return []
    if facts.workers > 1:
        return _fewer_workers(facts, own, own.figures.workers_now(facts.each), "")
    now = min(own.figures.units_now, facts.units - 1, _limit(told))
    return [_fewer(facts, own, now, f"{capital(free_now(own.figures, now))}.")] if now >= 1 else []


def _fewer_later(told: Status, facts: AdviceFacts) -> list[NextStep]:
    """For a run that can never start: how many units or workers could start later."""
    own = facts.own
    if own is None or not own.takes_fewer or not facts.may_change or is_of_size(told):
        return []
    if not is_never(told, facts) or _fewer_now(told, facts):
        return []
    in_all, unit = own.figures.granted + own.figures.borrowing_limit, own.figures.unit
    if facts.workers > 1 and facts.each <= own.most_units:
        return _fewer_workers(facts, own, in_all // facts.each, "it starts when so many are free")
    possible = min(own.most_units, in_all // facts.workers, facts.each - 1, _limit(told))
    why = f"{plural(possible, unit)} can start; it starts when so many are free."
    return [_fewer(facts, own, possible, why)] if possible >= 1 else []


def _again(told: Status, facts: AdviceFacts) -> list[NextStep]:
    """Starts the run unchanged, with the current definition of its class."""
    own = facts.own
    if own is None or not own.takes_fewer or not facts.may_change or facts.each > own.most_units:
        return []
    why = told.explained.remedy if told.explained else ""
    if facts.starts_on(own.figures):
        why = f"{why} {capital(free_now(own.figures, facts.each, facts.workers))}."
    return [NextStep("start_again", "Start it again", why.strip(), changed(facts, own.slug, facts.each, "choices"))]


def _limit(told: Status) -> int:
    """Returns the most that the namespace's quota allows, if known."""
    if told.reason == "share_limit":  # the device plugin gives one share to a container
        return 1
    limit, resource = told.facts.get("limit"), told.facts.get("resource")
    if told.reason != "quota_too_small" or resource in ("cpu", "memory") or not isinstance(limit, int):
        return 10_000
    return limit


def _fewer_workers(facts: AdviceFacts, own: ClassOption, possible: int, why: str) -> list[NextStep]:
    """Suggests as many workers as possible, each with as many units as now. `why`: a clause; "": they fit now."""
    count = min(possible, facts.workers - 1)
    if count < 1:
        return []
    size = f"{plural(count, 'worker')} of {plural(facts.each, own.figures.unit)}"
    label = f"Request {plural(count, 'worker')} instead of {facts.workers}"
    way = changed(facts, own.slug, facts.each, "id_workers", workers=count)
    return [NextStep("fewer_workers", label, f"{size}: {why or free_now(own.figures, facts.each, count)}.", way)]


def _fewer(facts: AdviceFacts, own: ClassOption, units: int, why: str) -> NextStep:
    for_each = " for each worker" if facts.workers > 1 else ""
    label = f"Request {plural(units, own.figures.unit)} instead of {facts.each}{for_each}"
    return NextStep("fewer_units", label, why, changed(facts, own.slug, units, "id_units"))


def _anywhere(_told: Status, facts: AdviceFacts) -> list[NextStep]:
    """Only if it starts now without the level: later it may be the other way round."""
    if facts.anywhere is None or facts.own is None or not facts.own.takes or not facts.may_change:
        return []
    if not facts.starts_on(facts.anywhere):
        return []
    why = f"{capital(free_now(facts.anywhere, facts.each, facts.workers))}."
    way = PageLink("workload-change", facts.name, place="id_topology_required")
    return [NextStep("change", f"Prefer one {facts.level} instead of requiring it", why, way)]


def _level(told: Status, facts: AdviceFacts) -> list[NextStep]:
    return change("topology_level", "Change the topology level")(told, facts) if is_never(told, facts) else []


def _stop_idle(_told: Status, facts: AdviceFacts) -> list[NextStep]:
    idle = sorted((one for one in facts.others if one.idle_since), key=lambda one: str(one.idle_since))
    return _stops(facts, idle)


def _stop_busy(told: Status, facts: AdviceFacts) -> list[NextStep]:
    """Suggests to stop the run that started last; not if stopping an idle one is enough."""
    if _stop_idle(told, facts):
        return []
    return _stops(facts, sorted(facts.others, key=lambda one: (one.idle_since is None, -one.since.timestamp())))


def _stops(facts: AdviceFacts, candidates: list[OtherRun]) -> list[NextStep]:
    own = facts.own
    mine = [one for one in candidates if one.may_stop][:STOPPED_OF]
    if own is None or own.figures.held or own.figures.leaving:
        return []
    for together in range(1, STOPPED_TOGETHER + 1):
        for found in combinations(mine, together):
            if _frees_enough(facts, own, found):
                return [_stop(own, found)]
    return []


def _frees_enough(facts: AdviceFacts, own: ClassOption, stopped: tuple[OtherRun, ...]) -> bool:
    """The waiting run keeps its position: only runs ahead take the freed units first."""
    freed = dict(facts.free_on)
    for one in stopped:
        for node, units in one.on.items():
            freed[node] = freed.get(node, 0) + units
    on_one_node = max(own.figures.on_one_node or 0, *freed.values())
    used = own.figures.used - sum(one.units for one in stopped)
    then = replace(own.figures, used=used, on_one_node=on_one_node, waiting=facts.ahead)
    return facts.starts_on(replace(then, free_on=tuple(freed.values())))


def _stop(own: ClassOption, found: tuple[OtherRun, ...]) -> NextStep:
    first, *rest = found
    size = plural(first.units, own.figures.unit)
    doing = f"idle since {date_and_time(first.idle_since)}" if first.idle_since else "in use"
    more = f"; together with {' and '.join(one.name for one in rest)}" if rest else ""
    started = f"started by {first.who} on {date_and_time(first.since)}"
    why = f"{capital(size)}, {doing}, {started}{more}. Frees enough {plural_form(own.figures.unit)}."
    label = f"Stop {' and '.join(one.name for one in found)}"
    return NextStep("stop_other", label, why, PageLink("workload", first.name))


def _wait(told: Status, facts: AdviceFacts) -> list[NextStep]:
    own, why = facts.own, told.explained.remedy if told.explained else ""
    if told.explained is not None and told.explained.restarts and who_acts(told.reason) is Who.YOU:
        why = "It restarts automatically. If it ends in the same way again, waiting does not help."
    if _ending_is_enough(facts) and own is not None:
        held = plural(facts.ending, own.figures.unit)
        are = "is" if facts.ending == 1 else "are"
        why = f"{held} of {own.name} {are} in use by terminating pods; it starts when these are gone."
    elif own is not None and facts.units > own.figures.granted and told.reason in ("waiting_for_quota", "preempted"):
        idle = plural_form(own.figures.unit)
        why = (
            f"It needs {idle} that other teams do not use. Its position in your team's queue has no effect on when "
            "they become available."
        )
    elif facts.ahead:
        is_ahead = "workload of your team is" if len(facts.ahead) == 1 else "workloads of your team are"
        why = f"{len(facts.ahead)} {is_ahead} ahead. {why}"
    return [NextStep("wait", "Wait", why.strip() or "It starts automatically.")]


def _ending_is_enough(facts: AdviceFacts) -> bool:
    return (
        facts.own is not None
        and bool(facts.ending)
        and facts.workers == 1
        and (facts.own.figures.on_one_node or 0) < facts.units <= (facts.ending + (facts.own.figures.on_one_node or 0))
    )


def _request(told: Status, facts: AdviceFacts) -> list[NextStep]:
    """Suggests a request for the missing quota, if the nodes of the class have so many units."""
    own = facts.own
    if own is None or not own.takes or facts.each > own.most_units or own.figures.leaving:
        return []
    figures = own.figures
    used = 0 if is_never(told, facts) else figures.used + sum(facts.ahead)
    lent = figures.borrowing_limit if is_never(told, facts) else 0
    missing = facts.units + used - figures.granted - lent
    if missing < 1 or own.allocatable is None or figures.granted + missing > own.allocatable:
        return []
    size = plural(missing, figures.unit)
    why = f"It needs {size} more than your team's quota of {figures.granted}; an approver decides."
    if not facts.may_request:
        who = "An owner or manager of your team can request it."
        return [NextStep("request_quota", f"Ask an owner or manager to request {size}", f"{why} {who}")]
    kind = {f"kind-{own.slug}": "boost"} if figures.granted else {}
    way = PageLink("request-new", query={f"units-{own.slug}": str(missing), **kind}, place=f"units-{own.slug}")
    what = f"a temporary increase of {size}" if figures.granted else size
    return [NextStep("request_quota", f"Request {what}", why, way)]


def _log(told: Status, facts: AdviceFacts) -> list[NextStep]:
    if "log" not in told.actions:
        return []
    return [NextStep("read_log", "Read the log", "See its last lines.", PageLink("workload-log", facts.name))]


def _secrets(told: Status, _facts: AdviceFacts) -> list[NextStep]:
    why = told.explained.remedy if told.explained else ""
    return [NextStep("put_secrets", "Save the secrets again", why, PageLink("secrets"))]


def _credentials(told: Status, _facts: AdviceFacts) -> list[NextStep]:
    why = told.explained.remedy if told.explained else ""
    return [NextStep("put_credentials", "Open the team's registry credentials", why, PageLink("team-images"))]


def _operators(told: Status, facts: AdviceFacts) -> list[NextStep]:
    why = f"Include the workload name {facts.name} and the reason {told.reason}: {with_full_stop(told.sentence)}"
    return [NextStep("tell_operators", "Contact an operator", why)]


_STEPS: Mapping[Remedy, Callable[[Status, AdviceFacts], list[NextStep]]] = {
    Remedy.OTHER_CLASS: _classes,
    Remedy.FEWER_NOW: _fewer_now,
    Remedy.FEWER_LATER: _fewer_later,
    Remedy.STOP_IDLE: _stop_idle,
    Remedy.STOP_BUSY: _stop_busy,
    Remedy.WAIT: _wait,
    Remedy.REQUEST: _request,
    Remedy.IMAGE: change("image", "Change the image"),
    Remedy.VOLUME: change("volume", "Choose another volume"),
    Remedy.COMMAND: change("command", "Change the command"),
    Remedy.REPOSITORY: change("repository", "Change the repository"),
    Remedy.REFERENCE: change("reference", "Change the branch or tag"),
    Remedy.FILES: files_change,
    Remedy.GPU_CLASS: change("gpu_class_0", "Choose a class with GPUs"),
    Remedy.GPU_MEMORY: change("gpu_memory_gib", "Request less GPU memory"),
    Remedy.ANYWHERE: _anywhere,
    Remedy.LEVEL: _level,
    Remedy.AGAIN: _again,
    Remedy.SIZES: size_change,
    Remedy.LESS: less_beside,
    Remedy.SECRETS: _secrets,
    Remedy.CREDENTIALS: _credentials,
    Remedy.LOG: _log,
    Remedy.OPERATORS: _operators,
}
