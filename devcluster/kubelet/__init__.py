"""Pod statuses as a kubelet writes them, and a scripted kubelet for tests."""
