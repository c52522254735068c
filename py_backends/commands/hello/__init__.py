"""The command `hello`."""
