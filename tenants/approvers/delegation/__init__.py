"""Who stands in for an approver, and when."""
