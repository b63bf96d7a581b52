"""Roles, what they own and may do, and which rights a statement needs."""
