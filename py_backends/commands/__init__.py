"""The commands of the command line, a module each: what it takes, and what it has the harness and the report do."""
