"""The agent, as a real program, with switchboards that are made for each test."""
