"""The ROS shell: profiles, topics, parameters, streams, the lifecycle base and bring-up."""
