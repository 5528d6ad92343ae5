"""What a class guarantees, computed from its axes and never typed in. Pure."""
