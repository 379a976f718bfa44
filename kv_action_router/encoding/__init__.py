"""Stage 1: observation -> TaskKey. Images, joint states, IMU and odometry become one 64-d key."""
