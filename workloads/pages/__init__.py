"""Pages and API that combine the other packages: the list, one workload, the launch form."""
