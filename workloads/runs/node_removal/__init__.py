"""What a run and its owner learn of the removal of its node. Not of its own end: `disruption_notices` records that."""
