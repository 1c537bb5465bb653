"""Template tags of the console: how states, ids, times and untrusted text are shown."""
