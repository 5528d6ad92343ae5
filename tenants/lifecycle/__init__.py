"""Suspending, resuming and closing a team's namespace. How a team begins is in onboarding, what happens in the cluster
in provisioning.
"""
