"""The switchboard, by what it says to agents and to the API server."""
