"""Who must agree to a digest, and whether they still do. Knows nothing of runs."""
