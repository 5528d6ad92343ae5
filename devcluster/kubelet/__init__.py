"""Pod statuses as a kubelet writes them, and a kubelet that plays what a test scripts."""
