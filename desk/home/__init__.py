"""A team's home as page, API and stream: quota, queued and running workloads, unmanaged pods, quick start."""
