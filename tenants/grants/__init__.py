"""What teams are entitled to, now and over time. Asking for quota, renewing it and taking it back are in requests, what
it means in the cluster is in provisioning.
"""
