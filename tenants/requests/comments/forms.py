"""The form of a comment."""

from __future__ import annotations

from django import forms

from tenants.requests.comments import policy as comment_policy


class CommentForm(forms.Form):
    text = forms.CharField(
        label="Comment", strip=True, max_length=comment_policy.COMMENT_MAX, widget=forms.Textarea(attrs={"rows": 3})
    )
    asks_back = forms.BooleanField(required=False)
