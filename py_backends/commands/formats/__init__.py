"""The command `formats`."""
