"""A real node beside the simulated ones: containerd, kubelet, kube-proxy, a local-path provisioner and a device plugin
in namespaces of their own. Needs root.
"""
