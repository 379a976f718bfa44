"""The cache on disk: one SQLite file a robot, written by a thread of its own."""
