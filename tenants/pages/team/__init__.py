"""The page of a team: members, namespace, lifecycle; and the same by REST."""
