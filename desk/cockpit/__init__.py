"""The operators' start page: capacity, queue, drift, trouble and pending requests. It computes none of them itself."""
