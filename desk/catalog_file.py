"""The catalog file against the rows: `export` reads them, `apply` hands what differs to the actions, all or nothing."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from functools import partial
from typing import Any

from django.db import IntegrityError, models, transaction

from accounts.actor import Actor
from catalog import actions, difference, file, policy, validity
from catalog import queries as catalog
from catalog.difference import Change
from catalog.file import Document, Field, Problem
from catalog.models import GpuClass, Image
from cluster.models import Cluster
from portal.errors import Refusal, Refused, get_or_refuse, refuse, to_refusal
from tenants import actions as tenants
from tenants.models import ClassAccess, Tenant

# Keys and bookkeeping; a hold is of the moment, and nobody keeps it in git.
_LEFT_OUT = ("id", "cluster", "slug", "held_since", "held_until", "held_reason")
_KINDS: dict[type[models.Field], Any] = {
    models.PositiveIntegerField: "integer",
    models.DecimalField: "decimal",
    models.BooleanField: "truth",
    models.DateField: "date",
    models.DateTimeField: "moment",
}
_RETIREMENT = ("successor", "retiring_message", "runs_until")
# What the actions call a field of the file otherwise.
_FIELDS_OF_ACTIONS = {"message": "retiring_message"}
LifeCycle = GpuClass.LifeCycle
Step = Callable[[], object]


@dataclass
class Outcome:
    lines: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def export() -> str:
    """The same rows give the same text. Four queries."""
    return file.write(_stored(catalog.cluster()), schema())


@transaction.atomic
def apply(text: str, *, prune: bool, dry_run: bool, by: Actor) -> Outcome:
    """With problems, or as a dry run, nothing is changed; a dry run asks the actions as well."""
    fields, cluster = schema(), catalog.cluster()
    wanted, problems = file.read(text, fields)
    if problems:
        return Outcome(problems=problems)
    changes = difference.difference(_stored(cluster), wanted, fields, prune=prune)
    outcome = Outcome(difference.lines(changes, fields), list(_invalid(wanted)))
    if not outcome.problems:
        outcome.problems = _carry_out(changes, wanted, cluster, by)
    transaction.set_rollback(dry_run or bool(outcome.problems))
    return outcome


# ---- rows → values -----------------------------------------------------------------------------------------------


def schema() -> file.Schema:
    classes = [*_fields(GpuClass), Field("teams", "names", [])]
    return {"classes": tuple(classes), "images": tuple(_fields(Image, left_out=("id", "name")))}


def _fields(model: type[models.Model], left_out: tuple[str, ...] = _LEFT_OUT) -> Iterator[Field]:
    for one in model._meta.get_fields():
        if not isinstance(one, models.Field) or one.name in left_out:
            continue
        if isinstance(one, models.ForeignKey):
            yield Field(one.name, "text", "")
            continue
        kind = _KINDS.get(type(one), "text")
        if isinstance(one, models.JSONField):
            kind = "labels" if one.default is dict else "tolerations"
        has_default = one.has_default() or one.null
        yield Field(
            one.name,
            kind,
            one.to_python(one.get_default()) if has_default else file.REQUIRED,
            tuple(str(value) for value, _ in one.choices or ()),
            one.max_length,
            one.null,
        )


def _stored(cluster: Cluster) -> Document:
    teams: dict[int, list[str]] = defaultdict(list)
    access = ClassAccess.objects.filter(gpu_class__cluster=cluster).order_by("tenant__slug")
    for pk, slug in access.values_list("gpu_class_id", "tenant__slug"):
        teams[pk].append(slug)
    classes = GpuClass.objects.filter(cluster=cluster).select_related("successor")
    fields = schema()
    return Document(
        classes={
            one.slug: {f.name: teams[one.pk] if f.name == "teams" else _value(one, f) for f in fields["classes"]}
            for one in classes
        },
        images={
            one.name: {f.name: _value(one, f) for f in fields["images"]}
            for one in Image.objects.select_related("successor")
        },
    )


def _value(row: GpuClass | Image, one: Field) -> Any:
    found = getattr(row, one.name)
    if one.name == "successor":
        return "" if found is None else found.slug if isinstance(found, GpuClass) else found.name
    return found.astimezone(UTC) if one.kind == "moment" and found else found


def _invalid(wanted: Document) -> Iterator[Problem]:
    for slug, values in (wanted.classes or {}).items():
        for refusal in validity.problems(values):
            yield _problem(f"classes.{slug}", refusal)


# ---- values → rows -----------------------------------------------------------------------------------------------


def _carry_out(changes: list[Change], wanted: Document, cluster: Cluster, by: Actor) -> list[Problem]:
    """Steps of one entry follow each other; entries wait for each other (a successor has to be open first, two classes
    may not select the same nodes meanwhile): what is refused is tried again as long as anything else gets on.
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


def _try(step: Step) -> Refusal | None:
    try:
        with transaction.atomic():
            step()
    except (Refused, IntegrityError) as error:
        refusal = to_refusal(error)
        if refusal is None:
            raise
        return refusal
    return None


def _problem(path: str, refusal: Refusal) -> Problem:
    name = _FIELDS_OF_ACTIONS.get(refusal.field or "", refusal.field)
    return Problem(f"{path}.{name}" if name else path, refusal.message)


def _steps(change: Change, wanted: Document, cluster: Cluster, by: Actor) -> Iterator[Step]:
    if change.section == "images":
        yield from _image_steps(change, (wanted.images or {}).get(change.name, {}), by)
    else:
        target = _Target(change, (wanted.classes or {}).get(change.name, {}), cluster, by)
        yield from target.value_steps()
        yield from target.team_steps()
        yield from target.life_steps()


@dataclass(frozen=True)
class _Target:
    """A class on its way to what the file says; `values` are empty for one that the file left out."""

    change: Change
    values: Mapping[str, Any]
    cluster: Cluster
    by: Actor

    @property
    def pk(self) -> int:
        return get_or_refuse(GpuClass.objects.only("pk"), cluster=self.cluster, slug=self.change.name).pk

    def value_steps(self) -> Iterator[Step]:
        if self.change.sign == "+":
            values = {name: self.values[name] for name in actions.EDITABLE}
            yield lambda: actions.create_class(slug=self.change.name, cluster=self.cluster, by=self.by, **values)
        elif edited := {name: self.values[name] for name in actions.EDITABLE if name in self.change.fields}:
            yield lambda: actions.edit_class(self.pk, by=self.by, **edited)

    def team_steps(self) -> Iterator[Step]:
        before, after = self.change.fields.get("teams", ([], []))
        for team in sorted(set(after) - set(before)):
            yield partial(self._team, tenants.allow_team, team)
        for team in sorted(set(before) - set(after)):
            yield partial(self._team, tenants.disallow_team, team)

    def life_steps(self) -> Iterator[Step]:
        before, after = self.change.fields.get("life_cycle", (self.values.get("life_cycle"),) * 2)
        way = _way(before, after)
        for to in way:
            yield self._retire if to == LifeCycle.RETIRING else partial(self._move, to)
        if LifeCycle.RETIRING not in way and any(name in self.change.fields for name in _RETIREMENT):
            yield self._retire if after == LifeCycle.RETIRING else self._refuse_words

    def _team(self, verb: Callable[..., object], team: str) -> None:
        if not Tenant.objects.filter(slug=team).exists():
            raise refuse("unknown_team", f"There is no team '{team}'.", field="teams")
        verb(self.pk, tenant=team, by=self.by)

    def _move(self, to: str) -> None:
        actions.move_class(self.pk, to=to, by=self.by)

    def _retire(self) -> None:
        successor, message, until = (self.values.get(name) for name in _RETIREMENT)
        actions.retire_class(self.pk, successor=successor or "", message=message or "", runs_until=until, by=self.by)

    def _refuse_words(self) -> None:
        name = next(name for name in _RETIREMENT if name in self.change.fields)
        text = "Only a class that is being retired has a successor, a message and an end; set `life_cycle: retiring`."
        raise refuse("not_retiring", text, field=name)


def _way(before: str, after: str) -> list[str]:
    """The shortest way of a class's life from one state to another. Where there is none, the policy says so."""
    ways = deque([[before]])
    seen = {before}
    while ways:
        way = ways.popleft()
        if way[-1] == after:
            return way[1:]
        for to in policy.STEPS[way[-1]]:
            if to not in seen:
                seen.add(to)
                ways.append([*way, to])
    return [after]


def _image_steps(change: Change, values: Mapping[str, Any], by: Actor) -> Iterator[Step]:
    def remove() -> None:
        actions.remove_image(get_or_refuse(Image.objects.all(), name=change.name).pk, by=by)

    def put() -> None:
        successor = None
        if values["successor"]:
            successor = Image.objects.filter(name=values["successor"]).first()
            if successor is None:
                raise refuse("unknown_image", f"There is no image '{values['successor']}'.", field="successor")
        actions.put_image(name=change.name, by=by, **{**values, "successor": successor})

    yield remove if change.sign == "-" else put
