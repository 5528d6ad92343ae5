"""Standing checks: does the catalog still say what nodes and queues are?"""
