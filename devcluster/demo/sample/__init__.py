"""Sample data of the demo: quota, history and workloads, made with the portal's own actions."""
