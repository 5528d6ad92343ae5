"""Signing in and out: by password, into the Django admin, and by an issuer (oidc)."""
