"""Standing checks: does the catalog still describe the nodes and queues of the cluster?"""
