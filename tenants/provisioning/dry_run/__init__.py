"""What the pending lines of a request would change in the cluster, tried and changed nowhere."""
