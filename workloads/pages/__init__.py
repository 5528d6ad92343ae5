"""Pages and API that join the rooms: the list, one workload, the launch form."""
