"""What was done and who is told: one event for each verb, deliveries, and their texts."""
