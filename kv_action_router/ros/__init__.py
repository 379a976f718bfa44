"""The ROS shell: quality of service, topics, parameters, streams, the lifecycle base and bring-up."""
