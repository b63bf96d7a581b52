"""Replacements of materialized views: staging one, applying it, and looking at what it changes."""
