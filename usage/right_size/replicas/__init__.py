"""Whether the GPU memory of a time-sliced class is too small for its replicas, and how many fewer are proposed."""
