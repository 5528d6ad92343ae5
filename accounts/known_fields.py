"""What is sent field by field, to the API or by a form: what is not known is refused, never ignored in silence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django import forms
from rest_framework import serializers

from portal.errors import Refusal, Refused

NAME_LIMIT = 60


def unknown_field(sent: Collection[str], known: Collection[str], *, within: str = "") -> Refusal | None:
    """The first of `sent`, in the order of the alphabet, that is not a field here; `within` is the path to here."""
    unknown = sorted(set(sent) - set(known))
    if not unknown:
        return None
    name = f"{within}{unknown[0][:NAME_LIMIT]}"
    place = f"Fields of {within[:-1]}" if within else "Fields"
    text = f"There is no field '{name}', so nothing was changed. {place} are: {', '.join(known)}."
    return Refusal("unknown_field", text, field=name)


class KnownFields(serializers.Serializer[Any]):
    """Who sends a field believes that it matters. Raises Refused: unknown_field (422)."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = [name for name, field in self.fields.items() if not field.read_only]
            if refusal := unknown_field([str(name) for name in data], known, within=_path(self)):
                raise Refused(refusal)
        return super().to_internal_value(data)


def _path(serializer: serializers.BaseSerializer[Any]) -> str:
    """`options.` for what stands under that key."""
    path, one = "", serializer
    while isinstance(one.parent, serializers.BaseSerializer):
        path, one = f"{one.field_name}.{path}", one.parent
    return path


class KnownFieldsForm(forms.Form):
    """The same for a page. `sent_along`: what its page sends beside the fields."""

    sent_along: frozenset[str] = frozenset({"csrfmiddlewaretoken"})

    def clean(self) -> dict[str, Any] | None:
        if refusal := unknown_field(set(self.data) - self.sent_along, list(self.fields)):
            raise forms.ValidationError(refusal.message, code=refusal.code)
        return super().clean()
