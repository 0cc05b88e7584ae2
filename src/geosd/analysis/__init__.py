"""From sample files to scores, statistics and claims."""
