"""The notebook runner: a kubelet for one purpose. Notebook pods on simulated nodes run here as real JupyterLabs.

    python -m devcluster.notebooks --kubeconfig ADMIN --log-dir DIR

kwok plays all other pods of those nodes. What a notebook's container would do happens in a local process: same
command, same environment, own loopback address as pod IP. There is no isolation: whoever may start notebooks runs
programs as the user of this process. That is meant for one machine and one person.
"""
