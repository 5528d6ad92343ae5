"""State changes decided by people, as compare-and-set. A model's TRANSITIONS maps each state to its next states."""

from __future__ import annotations

from typing import Any

from django.db import models

from portal.core.errors import NOT_FOUND, Refusal, Refused


def move_state(model: type[models.Model], pk: int, *, to: str, **changes: Any) -> None:
    """One conditional UPDATE of `state` (and `changes`): if several people decide at once, exactly one succeeds.

    Raises Refused: already_decided (409) if the current state does not allow `to`; not_found (404).
    """
    transitions: dict[str, set[str]] = model.TRANSITIONS  # type: ignore[attr-defined]
    sources = [source for source, targets in transitions.items() if to in targets]
    if not sources:
        raise ValueError(f"No state of {model.__name__} leads to '{to}'.")
    rows = model._base_manager.filter(pk=pk)
    if rows.filter(state__in=sources).update(state=to, **changes):
        return
    state = rows.values_list("state", flat=True).first()
    if state is None:
        raise Refused(NOT_FOUND)
    raise Refused(already_decided(model, state))


def already_decided(model: type[models.Model], state: str) -> Refusal:
    noun = model._meta.verbose_name
    return Refusal(
        "already_decided",
        f"This {noun} is already {state}. Nothing was changed. Reload the page to see who decided and when.",
        status=409,
    )
