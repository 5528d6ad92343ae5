"""Pages and API that combine the rooms: the list, one workload, the launch form."""
