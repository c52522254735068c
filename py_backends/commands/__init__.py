"""The commands of the command line, one module each. A command parses its options and calls harness and report."""
