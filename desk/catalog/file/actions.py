"""Applies a catalog file: differences from the rows go to the actions of catalog and tenants, all or nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction

from accounts.core.actor import Actor
from catalog.classes import actions, policy
from catalog.classes.validation import field_checks
from catalog.file import diff, reader
from catalog.file.diff import EntryChange
from catalog.file.types import CatalogDocument, FileProblem
from catalog.images import actions as image_actions
from catalog.models import GpuClass, Image
from cluster.models import Cluster
from cluster.reads import queries as read_queries
from desk.catalog.file.queries import schema, stored_document
from portal.core.errors import Refusal, Refused, get_or_refuse, refuse, to_refusal
from tenants.class_access import actions as class_access_actions
from tenants.models import Tenant

_RETIREMENT = ("successor", "retiring_message", "runs_until")
# Fields that the actions name differently from the file.
_FIELDS_OF_ACTIONS = {"message": "retiring_message"}
LifeCycle = GpuClass.LifeCycle
CatalogStep = Callable[[], object]


@dataclass
class ApplyOutcome:
    lines: list[str] = field(default_factory=list)
    problems: list[FileProblem] = field(default_factory=list)


@transaction.atomic
def apply(text: str, *, prune: bool, dry_run: bool, by: Actor) -> ApplyOutcome:
    """Applies the file. With problems, or as a dry run, nothing is changed; a dry run calls the actions as well."""
    fields, cluster = schema(), read_queries.current_cluster()
    wanted, problems = reader.read_document(text, fields)
    if problems:
        return ApplyOutcome(problems=problems)
    stored = stored_document(cluster)
    changes = diff.diff_documents(stored, wanted, fields, prune=prune)
    outcome = ApplyOutcome(diff.diff_lines(changes, fields), list(_invalid(wanted, stored)))
    if not outcome.problems:
        outcome.problems = _carry_out(changes, wanted, cluster, by)
    transaction.set_rollback(dry_run or bool(outcome.problems))
    return outcome


# ---- errors of a file --------------------------------------------------------------------------------------------


def _invalid(wanted: CatalogDocument, stored: CatalogDocument) -> Iterator[FileProblem]:
    """What a stored class has had wrong since before a rule existed does not keep its file from being applied."""
    before = stored.classes or {}
    for slug, values in (wanted.classes or {}).items():
        known = field_checks.class_problems(before[slug]) if slug in before else []
        for refusal in field_checks.class_problems(values):
            if refusal not in known:
                yield _problem(f"classes.{slug}", refusal)


# ---- applying a file ---------------------------------------------------------------------------------------------


def _carry_out(changes: list[EntryChange], wanted: CatalogDocument, cluster: Cluster, by: Actor) -> list[FileProblem]:
    """Runs the steps of each entry in order. An entry may depend on another (a successor must be open first, two
    classes may not select the same nodes meanwhile): a refused step is retried as long as any other step succeeds.
    """
    waiting = {change.path: deque(_steps(change, wanted, cluster, by)) for change in changes}
    refused: dict[str, Refusal] = {}
    moved = True
    while moved:
        moved = False
        for path, steps in waiting.items():
            refused.pop(path, None)
            while steps:
                if refusal := _try(steps[0]):
                    refused[path] = refusal
                    break
                steps.popleft()
                moved = True
    return [_problem(path, refusal) for path, refusal in refused.items()]


def _try(step: CatalogStep) -> Refusal | None:
    try:
        with transaction.atomic():
            step()
    except (Refused, IntegrityError) as error:
        refusal = to_refusal(error)
        if refusal is None:
            raise
        return refusal
    return None


def _problem(path: str, refusal: Refusal) -> FileProblem:
    name = _FIELDS_OF_ACTIONS.get(refusal.field or "", refusal.field)
    return FileProblem(f"{path}.{name}" if name else path, refusal.message)


def _steps(change: EntryChange, wanted: CatalogDocument, cluster: Cluster, by: Actor) -> Iterator[CatalogStep]:
    if change.section == "images":
        yield from _image_steps(change, (wanted.images or {}).get(change.name, {}), by)
    else:
        target = _Target(change, (wanted.classes or {}).get(change.name, {}), cluster, by)
        yield from target.value_steps()
        yield from target.team_steps()
        yield from target.life_steps()


@dataclass(frozen=True)
class _Target:
    """A class and the values that the file gives it; `values` are empty for a class that is not in the file."""

    change: EntryChange
    values: Mapping[str, Any]
    cluster: Cluster
    by: Actor

    @property
    def pk(self) -> int:
        return get_or_refuse(GpuClass.objects.only("pk"), cluster=self.cluster, slug=self.change.name).pk

    def value_steps(self) -> Iterator[CatalogStep]:
        if self.change.sign == "+":
            values = {name: self.values[name] for name in actions.EDITABLE_FIELDS}
            yield lambda: actions.create_class(slug=self.change.name, cluster=self.cluster, by=self.by, **values)
        elif edited := {name: self.values[name] for name in actions.EDITABLE_FIELDS if name in self.change.fields}:
            yield lambda: actions.edit_class(self.pk, by=self.by, **edited)

    def team_steps(self) -> Iterator[CatalogStep]:
        before, after = self.change.fields.get("teams", ([], []))
        for team in sorted(set(after) - set(before)):
            yield partial(self._team, class_access_actions.allow_team, team)
        for team in sorted(set(before) - set(after)):
            yield partial(self._team, class_access_actions.disallow_team, team)

    def life_steps(self) -> Iterator[CatalogStep]:
        before, after = self.change.fields.get("life_cycle", (self.values.get("life_cycle"),) * 2)
        way = _way(before, after)
        for to in way:
            yield self._retire if to == LifeCycle.RETIRING else partial(self._move, to)
        if LifeCycle.RETIRING in way or not any(name in self.change.fields for name in _RETIREMENT):
            return
        if after == LifeCycle.RETIRING:
            yield self._retire
        # The step to active removes them, so a file from before the retirement, which has none, is possible.
        elif LifeCycle.ACTIVE not in way or any(self.values.get(name) for name in _RETIREMENT):
            yield self._refuse_words

    def _team(self, verb: Callable[..., object], team: str) -> None:
        if not Tenant.objects.filter(slug=team).exists():
            raise refuse("unknown_team", f"Team '{team}' does not exist.", field="teams")
        verb(self.pk, tenant=team, by=self.by)

    def _move(self, to: str) -> None:
        actions.move_class(self.pk, to=to, by=self.by)

    def _retire(self) -> None:
        successor, message, until = (self.values.get(name) for name in _RETIREMENT)
        actions.retire_class(self.pk, successor=successor or "", message=message or "", runs_until=until, by=self.by)

    def _refuse_words(self) -> None:
        name = next(name for name in _RETIREMENT if name in self.change.fields)
        text = "Only a retiring class has a successor, a message and an end; set `life_cycle: retiring`."
        raise refuse("not_retiring", text, field=name)


def _way(before: str, after: str) -> list[str]:
    """Returns the shortest path in the life cycle from one state to another. If there is none, the policy refuses."""
    ways = deque([[before]])
    seen = {before}
    while ways:
        way = ways.popleft()
        if way[-1] == after:
            return way[1:]
        for to in policy.TRANSITIONS[way[-1]]:
            if to not in seen:
                seen.add(to)
                ways.append([*way, to])
    return [after]


def _image_steps(change: EntryChange, values: Mapping[str, Any], by: Actor) -> Iterator[CatalogStep]:
    def remove() -> None:
        image_actions.remove_image(get_or_refuse(Image.objects.all(), name=change.name).pk, by=by)

    def put() -> None:
        successor = None
        if values["successor"]:
            successor = Image.objects.filter(name=values["successor"]).first()
            if successor is None:
                raise refuse("unknown_image", f"Image '{values['successor']}' does not exist.", field="successor")
        image_actions.put_image(name=change.name, by=by, **{**values, "successor": successor})

    yield remove if change.sign == "-" else put
