"""What an operator sees: log lines, metrics, the pages that serve them."""
