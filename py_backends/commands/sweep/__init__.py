"""The command `sweep`."""
