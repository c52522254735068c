"""Processes that share no memory and compute together by messages (MPI): how they are started, asked and ended."""
