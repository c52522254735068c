"""The command `choose`."""
