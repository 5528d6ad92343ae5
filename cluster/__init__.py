"""The Kubernetes side: manifests, the client, the mirror and its reads, and applied objects."""
