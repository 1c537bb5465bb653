"""Checkpoints and handoffs of real runs."""
