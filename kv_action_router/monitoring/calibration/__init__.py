"""Online calibration of the drives, from data that they produce at work."""
