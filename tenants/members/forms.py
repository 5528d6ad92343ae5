"""Forms about members: adding one, changing a role, requesting to join and answering a join request."""

from __future__ import annotations

from django import forms

from accounts.rest.strict.forms import StrictForm
from tenants.members import policy as member_policy
from tenants.models import Membership


class MemberForm(forms.Form):
    email = forms.EmailField(label="Email address", max_length=254)
    role = forms.ChoiceField(choices=Membership.Role.choices, initial=Membership.Role.MEMBER)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Membership.Role.choices)

    @property
    def first_error(self) -> str:
        return str(next(iter(self.errors.values()))[0])


class SharingForm(StrictForm):
    shares_notebooks = forms.BooleanField(
        required=False,
        label="Share new notebooks with the team",
        help_text="Used for launches without a choice, and preselected in the launch form. The user who launches a "
        "notebook can choose differently and change it later. Existing notebooks do not change. Viewers can "
        "never open one.",
    )


class JoinAnswerForm(forms.Form):
    """The answer to a join request."""

    answer = forms.ChoiceField(choices=[("accept", "accept"), ("decline", "decline")])
    role = forms.ChoiceField(choices=Membership.Role.choices, required=False)
    reason = forms.CharField(required=False, max_length=member_policy.MESSAGE_MAX)

    def clean_role(self) -> str:
        return self.cleaned_data["role"] or Membership.Role.MEMBER


class JoinForm(forms.Form):
    team = forms.SlugField(max_length=40, widget=forms.HiddenInput)
    message = forms.CharField(required=False, label="Message to the owners", max_length=member_policy.MESSAGE_MAX)
