"""FLOPs, memory and hours: the plan before anything is spent."""
