"""API tokens of a team. Tokens of a person are in accounts."""
