"""The process for long-lived connections (doors): its routes, and the app behind each."""
