"""Rows that a statement as text brings are the models' own."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import models
from django.db.models.signals import post_init, pre_init

from portal.core.sql import columns, instance, select
from tests.support.rows import make

MODELS = [model for model in apps.get_models() if any(field.primary_key for field in model._meta.concrete_fields)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_nothing_of_a_model_waits_for_its_making(model: type[models.Model]) -> None:
    """What is left out in `instance` would be missed by a model with an `__init__`, or by who listens to it."""
    assert model.__init__ is models.Model.__init__
    assert model.from_db.__func__ is models.Model.from_db.__func__  # type: ignore[attr-defined]
    assert not pre_init.has_listeners(model)
    assert not post_init.has_listeners(model)


@pytest.mark.django_db
def test_an_instance_is_what_the_orm_reads() -> None:
    person = make.user("Alice")

    (found,) = select(type(person), "id = %s", [person.pk])

    (read,) = type(person).objects.filter(pk=person.pk)
    assert _all_of(found) == _all_of(read)
    assert found == read
    found.name = "Alicia"
    found.save(update_fields=["name"])
    read.refresh_from_db()
    assert read.name == "Alicia"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_an_instance_has_every_column(model: type[models.Model]) -> None:
    values: list[Any] = [None for _ in columns(model).split(", ")]
    values[[field.primary_key for field in model._meta.concrete_fields].index(True)] = 7

    found = instance(model, iter(values))

    names = [field.attname for field in model._meta.concrete_fields]
    assert _all_of(found).keys() == _all_of(model.from_db("default", names, values)).keys()
    assert found.pk == 7


def _all_of(found: models.Model) -> dict[str, Any]:
    return {**vars(found), "_state": {name: vars(found._state)[name] for name in ("adding", "db")}}
