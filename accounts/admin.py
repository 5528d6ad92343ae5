"""The Django admin does not show what allauth registers there: accounts/credentials/actions.py has verbs for it."""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin

for model in (Authenticator, EmailAddress, UserSession):
    admin.site.unregister(model)
