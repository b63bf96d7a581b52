"""Clusters, replicas and profiles: made, changed, shown, and which of them can answer."""
