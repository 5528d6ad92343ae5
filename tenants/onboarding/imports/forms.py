"""The form of an import: the export, and what it does not say."""

from __future__ import annotations

from typing import Any

from django import forms

from accounts.rest.strict.forms import StrictForm
from portal.core.errors import refuse
from tenants.core.forms import DATE_INPUT
from tenants.onboarding.imports.sources.claim_names import SCHEMES
from tenants.onboarding.imports.sources.reading import name_pairs
from tenants.onboarding.imports.types import ImportOptions

# A page answers within seconds, and sends the file again when the import is confirmed; the command takes larger ones.
PAGE_BYTES_MAX = 512 * 2**10
PAGE_ROWS_MAX = 200
SYSTEMS = [("csv", "CSV"), ("coldfront", "ColdFront"), ("waldur", "Waldur"), ("jupyterhub", "JupyterHub")]
LINES = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})


class ImportForm(StrictForm):
    """`text`: the content of the file of the preview; a new file replaces it. `seen`: the report of the preview."""

    sent_along = StrictForm.sent_along | {"go", "seen"}

    source = forms.ChoiceField(label="System", choices=SYSTEMS)
    file = forms.FileField(label="File", required=False)
    text = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)
    classes = forms.CharField(
        required=False, widget=LINES, help_text="A line for each class: THEIRS=OURS. THEIRS= leaves it out."
    )
    teams = forms.CharField(
        label="Short names", required=False, widget=LINES, help_text="A line for each team: THEIRS=OURS."
    )
    until = forms.DateField(label="Last day of quota without one", required=False, widget=DATE_INPUT)
    owner = forms.EmailField(label="Owner of teams without one", required=False)
    adds_accounts = forms.BooleanField(label="Create accounts for people without one", required=False)
    over_promise = forms.CharField(label="Reason for an overcommit", required=False, max_length=500)
    domain = forms.CharField(label="JupyterHub: end of addresses", required=False, max_length=200)
    into = forms.SlugField(label="JupyterHub: team of users without a group", required=False, max_length=40)
    namespace = forms.CharField(label="JupyterHub: namespace of the claims", required=False, max_length=63)
    claim_template = forms.CharField(
        label="JupyterHub: template of claims", required=False, max_length=200, initial="claim-{user_server}"
    )
    slug_scheme = forms.ChoiceField(
        label="JupyterHub: slug scheme", required=False, choices=[(one, one) for one in SCHEMES]
    )

    def content(self) -> bytes:
        """Raises Refused: bad_value, too_large."""
        file = self.cleaned_data["file"]
        data: bytes = file.read(PAGE_BYTES_MAX + 1) if file else self.cleaned_data["text"].encode()
        if not data:
            raise refuse("bad_value", "Choose the file with the export.", field="file")
        if len(data) > PAGE_BYTES_MAX:
            text = f"The file is larger than {PAGE_BYTES_MAX // 2**10} KiB. Use manage.py import_teams."
            raise refuse("too_large", text, field="file")
        return data

    def options(self, ours: list[str]) -> ImportOptions:
        """Raises Refused: bad_line."""
        values: dict[str, Any] = self.cleaned_data
        names = ("until", "owner", "domain", "into", "namespace")
        return ImportOptions(
            ours=ours,
            classes=name_pairs(values["classes"].split("\n") if values["classes"] else (), "classes"),
            teams=name_pairs(values["teams"].split("\n") if values["teams"] else (), "teams"),
            claim_template=values["claim_template"] or ImportOptions.claim_template,
            slug_scheme=values["slug_scheme"] or ImportOptions.slug_scheme,
            **{name: values[name] for name in names},
        )
