"""The pages about runs. Views load through `access`, act through `actions`, and render; they hold no rules."""
