"""The embedded Kubernetes: programs, certificates, control plane, Kueue, kwok, simulated hardware, identities."""
