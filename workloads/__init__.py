"""What runs and waits: workloads, runs, launch, phase, gateway authorisation."""
