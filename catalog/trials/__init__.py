"""Device trials: whether Kueue counts a device class, and whether the API server and Kueue accept a CEL selector.

It creates objects that nothing can ever admit, and reads what Kueue says of them. It changes no class.
"""
