"""Which stored keys are most like this one: exact, and by a graph for more than 100,000."""
