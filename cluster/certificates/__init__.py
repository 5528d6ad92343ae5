"""How long the certificates of the installation are valid: read by a worker every minute, kept as rows for Health and
metrics. Nothing is renewed here.
"""
