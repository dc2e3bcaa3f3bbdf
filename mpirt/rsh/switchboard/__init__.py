"""All commands of one launcher in one process, as docs/switchboard.md has it."""
