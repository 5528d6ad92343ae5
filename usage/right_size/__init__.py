"""Which size of a workload its measured use suggests."""
