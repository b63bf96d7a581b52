"""What replicas and the supervisor report of themselves, as rows of system relations."""
