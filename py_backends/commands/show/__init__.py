"""The command `show`."""
