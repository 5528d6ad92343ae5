"""Which class suits a workload, and what usual failures on a class mean. Pure."""
