"""What was measured, and what it says: identities, records, checks, statistics and verdicts."""
