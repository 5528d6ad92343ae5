"""The pages that lead to a launch."""
