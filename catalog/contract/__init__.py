"""The contract of a class: what it guarantees, computed from its axes and never typed in. Pure."""
