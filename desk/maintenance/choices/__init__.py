"""What a run's people choose for the drain of its node, as a part of its page and in the API. The rules are in
operations/maintenance/choices.
"""
