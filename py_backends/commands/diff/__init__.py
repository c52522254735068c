"""The command `diff`."""
