"""What teams are entitled to, now and over time. Requesting, renewing and reducing quota are in requests; what grants
mean in the cluster is in provisioning.
"""
