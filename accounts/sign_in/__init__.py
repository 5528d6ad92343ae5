"""Signing in and out by password, into the administration, and by an issuer (oidc)."""
