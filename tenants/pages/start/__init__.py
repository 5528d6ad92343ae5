"""The start page of a user without a team: invitations, join requests, requests for a team, a trial."""
