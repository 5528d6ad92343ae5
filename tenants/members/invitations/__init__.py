"""How people join a team: invitations by its managers, and join requests."""
