"""The approver's inbox, and the evidence that a decision about quota rests on. Decisions themselves are in tenants."""
