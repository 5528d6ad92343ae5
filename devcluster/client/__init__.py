"""A small client for the Kubernetes API, with independent eyes: calls, list and watch, definitions, kubeconfigs."""
