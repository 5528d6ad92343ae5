"""Who belongs to a team and with which role. Joining is in invitations, memberships by groups of the OIDC issuer in
group_sync, API tokens of the team in tokens.
"""
