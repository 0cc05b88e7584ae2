"""Tables and figures, one module each, drawn from tidy files only."""
