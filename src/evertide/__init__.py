"""A streaming SQL database on PySpark: views that stay up to date."""
