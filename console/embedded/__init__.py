"""The supervisor and the servers it owns: PostgreSQL, Valkey, web, worker, beat."""
