"""Faults of GPUs, as dcgm-exporter reports them: read once a minute, what they mean in plain words, who is told, and
where they are shown. Only GPUs of NVIDIA. Alerts of Prometheus are in deploy/monitoring/rules.
"""
