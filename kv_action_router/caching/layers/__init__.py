"""The three layers: what to do (task), how (behavior), how not to break anything (execution)."""
