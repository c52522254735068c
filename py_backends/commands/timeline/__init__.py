"""The command `timeline`."""
