"""The demo's story, played through HTTP against the real processes."""
