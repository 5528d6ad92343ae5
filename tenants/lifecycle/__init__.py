"""Suspending, resuming and closing a team's namespace. Creating a team is in onboarding, changes in the cluster are in
provisioning.
"""
