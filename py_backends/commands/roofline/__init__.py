"""The command `roofline`."""
