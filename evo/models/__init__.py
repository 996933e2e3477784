"""The model: its endpoint, its limits, what is known of it, and stand-ins for it."""
