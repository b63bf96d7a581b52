"""What functions about objects ask of the catalog and of the session: catalog_functions and
listed_functions, answered by relations, owners, comments, object_names, procedure_texts and
session_values.
"""
