"""How people come into a team: invitations by its managers, and requests to join."""
