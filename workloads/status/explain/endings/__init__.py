"""Why a pod ended: by itself, by the node or by the cluster; and why a repository was not cloned. Pure.

States only what the facts support: exit code 137 means that the process was killed, not that memory ran out.
"""
