"""A small Kubernetes client that is independent of the portal: calls, list and watch, CustomResourceDefinitions,
kubeconfigs.
"""
