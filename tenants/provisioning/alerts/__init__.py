"""Mails about objects that the cluster refuses."""
