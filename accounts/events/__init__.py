"""The record of actions and their notifications: one event per verb, deliveries, and their texts."""
