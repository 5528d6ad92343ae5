"""MIG layouts for several nodes with the same GPUs: what is needed of them, the plan, and its maintenances; as page and
API. What plans is catalog/mig/sets.
"""
