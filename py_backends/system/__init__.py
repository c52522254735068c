"""What Linux gives: processes, signals, channels between processes, shared memory, files, CPUs and the machine."""
