"""The cluster-wide objects of the catalog: a ResourceFlavor for each class and the Cohort."""
