"""Pages, API and commands that join several apps. It has no models; what it writes, it writes by the apps' actions."""
