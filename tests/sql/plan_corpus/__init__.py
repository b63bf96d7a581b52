"""Queries whose rows, column names and types PostgreSQL gives, by feature."""
