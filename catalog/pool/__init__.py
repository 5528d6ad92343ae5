"""The cluster-wide objects of the catalog: a ResourceFlavor for each class and the Cohort, whose quota
follows the nodes with a delay. What the nodes report is in `classes/capacity`.
"""
