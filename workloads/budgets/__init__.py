"""The monthly budget of a team: set by staff, confirmed by owners, and its state as it was measured last. Launches read
it (`core/policy.py`). The cost is computed in `usage/reports`, a higher app, which calls `measured.py`.
"""
