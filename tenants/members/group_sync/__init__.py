"""Memberships and staff roles that groups of the OIDC issuer give, at each sign-in."""
