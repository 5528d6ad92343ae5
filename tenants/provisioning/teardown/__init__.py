"""Takes what a closed team has in the cluster away."""
