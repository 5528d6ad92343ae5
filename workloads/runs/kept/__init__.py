"""What is kept of a run when its pods go: why it failed, and its log. The rows are in `status/` and `logs/`."""
