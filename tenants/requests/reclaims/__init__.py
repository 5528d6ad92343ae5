"""Staff reduce the quota of a team with notice; an approver decides it like every request."""
