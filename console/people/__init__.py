"""The pages on which people, groups and organisations are managed, and one's own settings."""
