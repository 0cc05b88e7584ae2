"""From a gradient to a step: K-FAC, AdamW, warm-up."""
