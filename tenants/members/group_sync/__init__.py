"""Places in teams and roles of staff that groups of the OIDC issuer give, at each sign-in."""
