"""The start of somebody who is in no team: invitations, join requests, team requests, a trial."""
