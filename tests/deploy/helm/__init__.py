"""The Helm chart in `deploy/`: the same objects as kustomize's, its values, its life in a cluster of its own."""
