"""The Kubernetes side: names, specs, manifests, the client, mirror rows, applied objects, the watcher."""
