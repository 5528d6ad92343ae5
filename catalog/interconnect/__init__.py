"""What operators measured of the interconnect of nodes: links of GPUs, bandwidth of all_reduce. Measures nothing."""
