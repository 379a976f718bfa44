"""What a run was: records, statistics, the report, its bounds, its plots and its live table."""
