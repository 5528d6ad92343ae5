"""Forms of the page of a team's own images: an allowed prefix, and the login to a registry."""

from __future__ import annotations

from django import forms

from accounts.rest.strict.forms import StrictForm
from catalog.images.image_references import PREFIX_LIMIT
from workloads.core.forms import VERBATIM_INPUT, AnyChoice
from workloads.credentials.registries import policy as registry_policy


class PrefixForm(StrictForm):
    prefix = forms.CharField(  # type: ignore[assignment]
        max_length=PREFIX_LIMIT,
        help_text="Host and path, for example registry.example.org/vision/. All images below it may be used.",
        widget=forms.TextInput(attrs=VERBATIM_INPUT),
    )


class RegistryForm(StrictForm):
    """The action knows the registries; they are offered when the form is shown."""

    registry = AnyChoice(help_text="Registries with an allowed prefix.")
    username = forms.CharField(
        max_length=registry_policy.USERNAME_LIMIT,
        label="User name",
        help_text="Use a robot account with read-only access.",
        widget=forms.TextInput(attrs=VERBATIM_INPUT),
    )
    password = forms.CharField(
        strip=False,
        max_length=registry_policy.PASSWORD_LIMIT,
        label="Password or token",
        help_text="Never shown again. Use the API for passwords with several lines.",
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off"}),
    )

    def offer(self, hosts: list[str]) -> None:
        field = self.fields["registry"]
        assert isinstance(field, AnyChoice)
        field.choices = [(host, host) for host in hosts]
