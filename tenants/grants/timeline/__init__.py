"""A team's grants over time: when each expires, what follows it, and reductions of it."""
