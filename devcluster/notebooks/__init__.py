"""The notebook runner: a kubelet only for notebook pods. Those on simulated nodes run on this machine as real
JupyterLabs.

    python -m devcluster.notebooks --kubeconfig ADMIN --log-dir DIR

kwok simulates the other pods of these nodes. A local process does what the notebook's container would do: it has the
same command and environment, and its own loopback address as pod IP. There is no isolation: everybody who may start
notebooks can run programs as the user of this process. So use it only on a machine that one person uses.
"""
