"""The last log of each run, kept when the run ends, because its pods are deleted. Not here: logs that can still be read
from the cluster (`gateway`), and the texts that explain a failure (`status`).
"""
