"""A robot's model: description, limits, kinematics, gravity, collision."""
