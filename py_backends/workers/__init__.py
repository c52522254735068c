"""Processes that open a device, run kernels there and time them; a session is the state of such a process."""
