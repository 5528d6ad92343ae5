"""For who runs the portal: probes, metrics, log lines without secrets, and the internal port that serves them."""
