"""The search worlds: one unknown, two equations modulo 16, and a solution found by trial."""
