"""The controller room."""
