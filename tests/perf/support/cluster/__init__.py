"""What benchmarks put into a cluster: pods, runs, and teams whose members work at once."""
