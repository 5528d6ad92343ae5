"""Whether the API server that the portal reaches is the cluster of its rows. Another one is neither read nor written
until an operator has confirmed it, which `desk/installation/moving` does.
"""
