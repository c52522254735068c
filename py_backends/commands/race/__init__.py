"""The command `race`."""
