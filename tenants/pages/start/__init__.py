"""The start page of somebody who is in no team: invitations, join requests, requests for a team, a trial."""
