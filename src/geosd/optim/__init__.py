"""How a gradient becomes a step: K-FAC, AdamW, warm-up."""
