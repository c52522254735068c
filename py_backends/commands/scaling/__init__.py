"""The command `scaling`."""
