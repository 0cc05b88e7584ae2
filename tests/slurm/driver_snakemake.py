"""Snakemake, which looks as often as its site says whether its SLURM jobs have ended.

The plugin waits ten seconds longer after each look at which no job has ended, so of a job of 45 s
it learns after 68 s. The jobs of the tests are as short as that.
"""

from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor

Executor.next_seconds_between_status_checks = property(
    lambda self: self.workflow.executor_settings.init_seconds_before_status_checks,
    lambda self, seconds: None,
)

if __name__ == "__main__":
    main()
