"""A namespace that existed before the portal becomes a team's, with the consent of the cluster and of the owner."""
