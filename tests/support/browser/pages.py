"""The pages that people open most, as name → address and who opens it."""

PAGES = {
    "home": ("/teams/vision", "alice"),
    "team_list": ("/operators/teams", "olga"),
    "catalog": ("/catalog", "alice"),
    "class": ("/catalog/a100", "alice"),
    "launch": ("/teams/vision/launch", "alice"),
    "workloads": ("/teams/vision/workloads", "alice"),
    "run": ("/teams/vision/workloads/lab-0", "alice"),
    "run_with_history": ("/teams/vision/workloads/nightly", "alice"),
    "history": ("/teams/vision/history", "alice"),
    "queue": ("/queue", "olga"),
    "inbox": ("/inbox", "dana"),
    "notices": ("/notices", "alice"),
    "health": ("/health", "olga"),
    "operators": ("/operators", "olga"),
}
