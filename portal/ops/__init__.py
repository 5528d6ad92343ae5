"""For the people who run the portal: probes, metrics, log lines without secrets, and the internal port that serves
them.
"""
