"""The command line: `kv_router` and the demonstration."""
