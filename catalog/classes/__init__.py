"""GPU classes: their rules, their life cycle, their capacity, and the classes that discovery proposes."""
