"""What happens to a run when its node is drained: it starts again elsewhere, or it is stopped. Its people choose until
the drain begins; `leaving.py` is the drain, which follows the choice. Pages and API: desk/maintenance/choices.
"""
