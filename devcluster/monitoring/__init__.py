"""GPU metrics of the simulated nodes, as the exporters of the vendors serve them, and a Prometheus that scrapes them.

    python -m devcluster.monitoring --kubeconfig ADMIN --port PORT --assigned FILE

One process serves the exporters of all simulated nodes. The devices of a pod are real if the scheduler allocated them
(DRA); otherwise the simulation chooses, because no kubelet does. A notebook's GPU is as busy as its local process;
all other figures are computed from the pod's uid, the device and the time.
"""
