"""Sources, which bring rows in, and sinks, which write them out."""
