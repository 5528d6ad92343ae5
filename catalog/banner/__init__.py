"""What staff tell everybody about the cluster."""
