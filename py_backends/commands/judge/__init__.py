"""The command `judge`."""
