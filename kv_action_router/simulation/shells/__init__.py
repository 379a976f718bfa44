"""What the nodes do around the pure stages, without ROS: rates, and who hears what.

One class a stage, all on one thread and in simulated time; ``simulation/episode.py`` connects them.
"""
