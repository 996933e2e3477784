"""The subcommands of `evo`."""
