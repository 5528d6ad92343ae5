"""Classes that discovery proposes: accepted, edited, or dismissed with a reason."""
