"""One run: requested, planned, estimated, checked, timed in rounds and summed up. Knows no backend by name."""
