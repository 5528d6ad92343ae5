"""Bounds that the contract says while a verb judges them: what is beyond is refused in the sentence of the page.

Where no verb has a sentence the serializer refuses by DRF's own arguments (`max_length`, `min_value`, …).
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
    """Of a number."""
    return [_DocumentedMinimum(least), _DocumentedMaximum(most)]


def documented_length(most: int) -> Validators:
    """Characters of a text, items of a list, names of a dictionary."""
    return [_DocumentedLength(most)]


class DocumentedChoiceField(serializers.ChoiceField):
    """The contract says the choices; any other text is passed to the verb."""

    def to_internal_value(self, data: Any) -> str:
        text: str = serializers.CharField(allow_blank=self.allow_blank).run_validation(data)
        return text
