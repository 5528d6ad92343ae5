"""Page and API of observe-only: since when, what waits, and which GPUs others use in the cluster."""
