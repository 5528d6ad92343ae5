"""The embedded cluster: programs, certificates, control plane, Kueue, kwok, simulated hardware, the portal's service
accounts.
"""
