"""A dataflow's state spread over several tasks: who has which rows, and who asks them in turn."""
