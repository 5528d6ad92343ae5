"""Bounds that are only documented in the contract; the verb checks them, so that API and page refuse in the same words.

Where no verb checks a bound, the serializer does, with DRF's own arguments (`max_length`, `min_value`, …).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core import validators
from rest_framework import serializers

Validators = list[Callable[[Any], None]]


class _DocumentedMaximum(validators.MaxValueValidator):
    def __call__(self, value: Any) -> None: ...


class _DocumentedMinimum(validators.MinValueValidator):
    def __call__(self, value: Any) -> None: ...


class _DocumentedLength(validators.MaxLengthValidator):
    def __call__(self, value: Any) -> None: ...


def documented_range(least: int, most: int) -> Validators:
    """Bounds of a number."""
    return [_DocumentedMinimum(least), _DocumentedMaximum(most)]


def documented_length(most: int) -> Validators:
    """Maximum number of characters of a text, items of a list, or keys of a dictionary."""
    return [_DocumentedLength(most)]


class DocumentedChoiceField(serializers.ChoiceField):
    """The contract lists the choices. Any other text is passed to the verb, which checks it."""

    def to_internal_value(self, data: Any) -> str:
        text: str = serializers.CharField(allow_blank=self.allow_blank).run_validation(data)
        return text
