"""Stage 5: samples of every stream to signals, failure events and stage conditions; no ROS."""
