"""The command `predict`."""
