"""Task definitions, stages, their physical conditions and the task stack; no ROS."""
