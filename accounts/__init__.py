"""People, tenants, and whether a person may do a thing, now."""
