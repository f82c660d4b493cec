"""The subcommands of the program ``eman``, one module for each group."""
