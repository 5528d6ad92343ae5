"""What a cluster with thousands of teams costs its queues."""
