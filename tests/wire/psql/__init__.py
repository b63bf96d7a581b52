"""What psql's backslash commands are run against: commands, objects, golden files."""
