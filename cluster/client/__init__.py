"""All network access to a cluster: the Kubernetes API (`kube`, the only module that imports `kubernetes`), a notebook's
server, the check of the admission fence.
"""
