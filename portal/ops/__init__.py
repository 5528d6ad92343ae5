"""For operators of the portal: probes, metrics, logs without secrets, and the internal port for probes and metrics."""
