"""A team's grants over time: when each expires, what follows it, what is reclaimed of it."""
