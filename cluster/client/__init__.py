"""All network access to a cluster: the Kubernetes API (`kube`; only `login` imports `kubernetes`), a notebook's server,
the check of the admission fence. Handshakes that only read a certificate are in `cluster/certificates`.
"""
