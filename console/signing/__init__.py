"""Signing in, out, and in again."""
