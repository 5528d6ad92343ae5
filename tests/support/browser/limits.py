"""What a page may cost a person's browser: measured by `bench browser`, and tested where it does not depend on time."""

REQUESTS = 12
BYTES = 150_000
SHIFT = 0.02
FEEDBACK_MS = 150
LONG_TASK_MS = 50
