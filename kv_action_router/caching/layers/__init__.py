"""The three layers: what to do (task), how to do it (behavior), how not to break anything (execution)."""
