"""What teams are entitled to, now and over time. Asking for quota, renewing and reducing it are in requests, what it
means in the cluster is in provisioning.
"""
