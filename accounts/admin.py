"""What allauth would show in the Django admin has verbs of its own (accounts/credentials/actions.py) and is not edited there."""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin

for model in (Authenticator, EmailAddress, UserSession):
    admin.site.unregister(model)
