"""Types and secrets: what users define beside relations."""
