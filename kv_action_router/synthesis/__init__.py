"""Stage 3: CacheMatch -> TrajectoryChunk; everything but ``node.py`` is free of ROS."""
